// What the board and the tooltip say, apart from where they draw it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { finishLine, sentence } from "../../assets/js/dom/board.mjs";
import { tokenLines } from "../../assets/js/dom/tip.mjs";
import { fold, newView } from "../../assets/js/frame.mjs";
import { words } from "../../assets/js/words.mjs";

const say = words("en");
const tok = (s, at, n, more = {}) => ({ k: "tok", s, at, n, x: "ab".slice(0, n), o: "dt".slice(2 - n), ...more });
const end = (s, at, state = "finished") => ({ k: "end", s, at, state, reason: "stop", message: "The engine is gone." });

function viewOf(ev, more = {}) {
  const frame = { seq: 0, t: 1, head: { max_tokens: 100, mode: "race", greedy: true }, ev, ...more };
  return fold(newView(), frame);
}

test("both bars end at the token limit until one side has finished, then at its count; never before what arrived", () => {
  const running = [tok("standard", 0.1, 1), tok("speculative", 0.1, 2)];
  assert.equal(finishLine(viewOf(running), null), 100);
  assert.equal(finishLine(viewOf([...running, end("speculative", 0.2)]), null), 2);
  assert.equal(finishLine(viewOf([...running, end("speculative", 0.2, "failed")]), null), 100);
  assert.equal(finishLine(viewOf(running), 40), 40);
  assert.equal(finishLine(newView(), null), 1);
});

test("a token's tooltip tells position and step from 1, where it came from, when, and its probability", () => {
  const lp = [
    [-0.1, [["a", -0.1]]],
    [
      -0.5,
      [
        ["b", -0.5],
        ["c", -1.2],
      ],
    ],
  ];
  const view = viewOf([
    { k: "start", s: "speculative", at: 0.5 },
    tok("speculative", 0.75, 2, { p: ["a", "b"], lp, dr: 4, ac: 1 }),
  ]);
  const lines = tokenLines(view.sides.speculative, 1, say, "en").map((line) => line.replaceAll("\u202f", " "));
  assert.deepEqual(lines, [
    "b",
    "token 2 · step 1",
    "the target's own",
    "1 of 4 drafts accepted",
    "250 ms after the start",
    "log-probability -0.500 (60.7%)",
    "others: b 60.7%, c 30.1%",
  ]);
});

test("a chunk whose tokens cannot be told apart claims a range of positions and no single origin", () => {
  const view = viewOf([tok("speculative", 0.75, 2)]);
  const lines = tokenLines(view.sides.speculative, 0, say, "en");
  assert.deepEqual(lines, ["ab", "tokens 1 to 2 · step 1", "origin unknown"]);
});

test("an index without a token has no tooltip", () => {
  assert.deepEqual(tokenLines(newView().sides.standard, 3, say, "en"), []);
});

test("a screen reader hears the start, the counts, the result or the failure, each as one sentence", () => {
  assert.equal(sentence(viewOf([]), say, "en"), "Both engines are writing.");
  const running = [tok("standard", 0.1, 1), tok("speculative", 0.1, 2)];
  assert.equal(sentence(viewOf(running), say, "en"), "Standard 1 tokens, speculative 2 tokens.");
  const ended = { done: true, speedup: { decode: 0.83 }, verdict: { class: "identical" } };
  assert.equal(sentence(viewOf(running, ended), say, "en"), "Done. 0.83× slower than standard. Identical.");
  assert.equal(
    sentence(viewOf([...running, end("standard", 0.3, "failed")]), say, "en"),
    "The Standard side failed: The engine is gone.",
  );
});
