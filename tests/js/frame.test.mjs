// Frames of tests/golden/frames.json, which the Python tests write and check, must fold to what they expect.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { beginsStep, fold, newView, originOf, parseFrame, unpack } from "../../assets/js/frame.mjs";

const golden = JSON.parse(readFileSync(new URL("../golden/frames.json", import.meta.url), "utf8"));
const copy = () => golden.frames.map((frame) => parseFrame(JSON.stringify(frame)));
const folded = (frames = copy()) => frames.reduce(fold, newView());
const token = (n, text, more = {}) => ({
  seq: n,
  t: n / 10,
  ev: [{ k: "tok", s: "speculative", at: n / 10, x: text, ...more }],
});

test("the golden frames fold to the golden text, token counts and states of both sides", () => {
  const view = folded();
  for (const [side, expected] of Object.entries(golden.expect)) {
    const { text, count, state, tokens } = view.sides[side];
    assert.deepEqual({ text, tokens: count, state }, expected);
    assert.equal(tokens.map((t) => t.text).join(""), expected.text);
  }
  assert.equal(view.done, true);
  assert.equal(view.head.sides.speculative.method, "ngram");
});

test("positions run without gaps and each step begins with its first token", () => {
  const { tokens, steps } = folded().sides.speculative;
  assert.deepEqual(
    tokens.map((t) => t.first),
    [...tokens.keys()],
  );
  const begins = tokens.filter((t) => beginsStep({ steps }, t)).map((t) => t.first);
  assert.deepEqual(
    begins,
    steps.map((s) => s.first),
  );
});

test("the exact assignment that follows the end replaces the live one", () => {
  const view = folded();
  const letters = copy()
    .flatMap((f) => f.ev)
    .find((e) => e.k === "prov").o;
  assert.equal(view.sides.speculative.tokens.map((t) => t.origin).join(""), letters);
  assert.equal(view.sides.speculative.exact, true);
  assert.equal(view.sides.speculative.steps[1].drafted, 4);
});

test("frames sent twice, as after a reconnect, change nothing", () => {
  const frames = copy();
  const twice = [...frames.slice(0, 4), ...frames.slice(1, 5), ...frames];
  assert.deepEqual(folded(twice), folded());
});

test("a view that stopped anywhere goes on with the following frames", () => {
  for (let cut = 1; cut < golden.frames.length; cut += 1) {
    const view = folded(copy().slice(0, cut));
    copy().slice(cut).reduce(fold, view);
    assert.deepEqual(view, folded());
  }
});

test("numbers keep their contract names; null clears one and absent ones stay", () => {
  const view = newView();
  fold(view, { seq: 0, t: 0, ev: [], m: { standard: { ttft_s: 0.5, tpot_s: 0.1 } } });
  fold(view, { seq: 1, t: 1, ev: [], m: { standard: { ttft_s: null } } });
  assert.deepEqual(view.sides.standard.metrics, { ttft_s: null, tpot_s: 0.1 });
});

test("unknown keys, kinds, sides and broken events are passed over", () => {
  const view = newView();
  const odd = [
    { k: "tok", s: "third", x: "no" },
    { k: "later", s: "standard" },
    null,
    7,
    { k: "tok", s: "__proto__", x: "no" },
  ];
  fold(view, { seq: 0, t: 0, ev: odd, future: { a: 1 }, m: { third: { x: 1 }, standard: [] }, notes: "none" });
  fold(view, { seq: 1, t: 0 });
  assert.deepEqual({ ...view, seq: -1, t: 0 }, newView());
});

test("a chunk whose tokens cannot be told apart is one piece that knows its count and its mixed origin", () => {
  const view = newView();
  fold(view, token(0, "abc def", { n: 3, o: "ddt" }));
  fold(view, token(1, "!", { n: 1, o: "t" }));
  const [chunk, last] = view.sides.speculative.tokens;
  assert.deepEqual([chunk.count, originOf(chunk), last.first, originOf(last)], [3, "m", 3, "t"]);
});

test("pieces that do not join to the text are not trusted", () => {
  const view = newView();
  fold(view, token(0, "abcd", { n: 2, o: "dt", p: ["ab", "c"] }));
  assert.deepEqual(
    view.sides.speculative.tokens.map((t) => t.text),
    ["abcd"],
  );
});

test("text without token counts is shown and claims no position", () => {
  const view = newView();
  fold(view, token(0, "hello", { n: 0, o: "" }));
  const side = view.sides.speculative;
  assert.deepEqual([side.text, side.count, side.steps.length, originOf(side.tokens[0])], ["hello", 0, 0, "u"]);
});

test("reasoning text is kept apart from the answer", () => {
  const view = newView();
  fold(view, token(0, "", { n: 1, o: "t", r: "hmm" }));
  assert.deepEqual([view.sides.speculative.reasoning, view.sides.speculative.text], ["hmm", ""]);
});

test("log-probabilities stay with their tokens", () => {
  const view = newView();
  fold(
    view,
    token(0, "ab", {
      n: 2,
      o: "dt",
      p: ["a", "b"],
      lp: [
        [-0.1, []],
        [-0.2, [["b", -0.2]]],
      ],
    }),
  );
  assert.equal(view.sides.speculative.tokens[1].logprob[0], -0.2);
});

test("parseFrame refuses what is no frame", () => {
  assert.equal(parseFrame("<html>502</html>"), null);
  assert.equal(parseFrame("[1]"), null);
  assert.equal(parseFrame('{"seq":"1"}'), null);
  assert.equal(parseFrame('{"seq":1,"t":0}').seq, 1);
});

test("folding 20,000 tokens stays linear: no list is copied", () => {
  const view = newView();
  const { tokens } = view.sides.speculative;
  for (let i = 0; i < 20000; i += 1) fold(view, token(i, " word", { n: 1, o: "t" }));
  assert.equal(view.sides.speculative.tokens, tokens);
  assert.equal(tokens.length, 20000);
});

test("packed tokens: times count from the one before, one text is one token, a list is a burst with its pieces", () => {
  const events = unpack([
    { k: "start", s: "standard", at: 0.5 },
    [0, 1200, "a"],
    [1, 15, ["b", "c"]],
    [1, -2, "def", { n: 3, o: "ddt", r: "hm" }],
    [0, 10, "", { n: 0 }],
  ]);
  assert.deepEqual(events, [
    { k: "start", s: "standard", at: 0.5 },
    { k: "tok", s: "standard", at: 1.2, n: 1, x: "a", o: "t" },
    { k: "tok", s: "speculative", at: 1.215, n: 2, x: "bc", o: "dt", p: ["b", "c"] },
    { k: "tok", s: "speculative", at: 1.213, n: 3, x: "def", o: "ddt", r: "hm" },
    { k: "tok", s: "standard", at: 1.223, n: 0, x: "", o: "t" },
  ]);
});

test("odd packed tokens end as nothing, not as an error", () => {
  const view = newView();
  for (const odd of [[], [7, 1, "x"], [0, "1", 5], [0, 1, [null, 2]], [1, 1, []], "text", null])
    fold(view, parseFrame(JSON.stringify({ seq: view.seq + 1, t: 0, ev: [odd] })));
  assert.equal(view.sides.standard.text + view.sides.speculative.text, "");
  assert.deepEqual(unpack("none"), []);
});
