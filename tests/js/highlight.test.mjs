// Code colours: every character is kept, and state goes over line ends.
import assert from "node:assert/strict";
import { test } from "node:test";
import { highlight } from "../../assets/js/highlight.mjs";

test("the highlighter loses no character and knows comments, strings, numbers, words, calls", () => {
  const { pieces } = highlight('def f(x): return "a#b" + str(1.5)  # note', "python");
  assert.equal(pieces.map((p) => p.text).join(""), 'def f(x): return "a#b" + str(1.5)  # note');
  const kinds = Object.fromEntries(pieces.map((p) => [p.text.trim(), p.kind]));
  assert.deepEqual(
    [kinds.def, kinds['"a#b"'], kinds["1.5"], kinds["# note"], kinds.str, kinds.f],
    ["word", "text", "number", "note", "call", "call"],
  );
});

test("a comment or string that goes over lines keeps its colour, and ends where it ends", () => {
  const first = highlight("x = 1 /* a", "js");
  assert.equal(first.state, "*/");
  const second = highlight("b */ let y", "js", first.state);
  assert.deepEqual(
    second.pieces.map((p) => p.kind),
    ["note", "", "word", ""],
  );
  assert.equal(second.state, null);
});

test("an unknown language and a giant line stay plain", () => {
  assert.deepEqual(highlight("def x", "klingon").pieces, [{ kind: "", text: "def x" }]);
  assert.deepEqual(highlight("x ".repeat(2000), "js").pieces.length, 1);
});
