// The player on a virtual clock: what is handed on, and when.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { newView, fold, parseFrame } from "../../assets/js/frame.mjs";
import { apply, createPlayer, schedule } from "../../assets/js/player.mjs";

const golden = JSON.parse(readFileSync(new URL("../golden/frames.json", import.meta.url), "utf8"));
const frames = () => golden.frames.map((frame) => parseFrame(JSON.stringify(frame)));
const tok = (s, at, x) => ({ k: "tok", s, at, n: 1, x, o: "t" });
/** Measured one after the other: standard 10 to 14 s, speculative 20 to 22 s. */
const measured = () => [
  { seq: 0, t: 10, head: { mode: "measure" }, ev: [{ k: "start", s: "standard", at: 10 }] },
  { seq: 1, t: 14, ev: [tok("standard", 11, "a"), tok("standard", 14, "b")], m: { standard: { output_tokens: 2 } } },
  {
    seq: 2,
    t: 22,
    ev: [{ k: "start", s: "speculative", at: 20 }, tok("speculative", 21, "a"), tok("speculative", 22, "b")],
  },
  {
    seq: 3,
    t: 22,
    ev: [],
    m: { speculative: { output_tokens: 2 } },
    speedup: { decode: 2 },
    verdict: { class: "identical" },
    done: true,
  },
];
const player = (list, mode = "replay", now = 0) => {
  const p = createPlayer();
  for (const frame of list) p.add(frame);
  if (mode !== "live") p.replay(now, mode);
  return p;
};
/** The view after advancing to `now`. */
function follow(p, view, now) {
  const { items, rewound } = p.advance(now);
  const next = rewound ? newView() : view;
  for (const item of items) apply(next, item);
  return next;
}
const texts = (view) => [view.sides.standard.text, view.sides.speculative.text];

test("live: handed on at once, in order, exactly as a plain fold", () => {
  const p = createPlayer();
  let view = newView();
  for (const frame of frames()) {
    assert.equal(p.add(frame), true);
    assert.equal(p.add(frame), false);
    view = follow(p, view, 0);
  }
  assert.deepEqual(view, frames().reduce(fold, newView()));
});

test("replay at full speed releases each event at its arrival time", () => {
  const p = player(frames());
  let view = follow(p, newView(), 0);
  assert.deepEqual(texts(view), ["", ""]);
  view = follow(p, view, 0.0799); // golden: speculative speaks at 0.081, the first start was at 0.001
  assert.deepEqual(texts(view), ["", ""]);
  view = follow(p, view, 0.0801);
  assert.deepEqual(texts(view), ["", "Hello"]);
  view = follow(p, view, 9);
  assert.deepEqual(texts(view), [golden.expect.standard.text, golden.expect.speculative.text]);
  assert.equal(view.done, true);
  assert.equal(p.ended, true);
});

test("quarter speed takes four times as long, and a change of speed goes on from where it was", () => {
  const p = player(frames());
  p.setSpeed(0.25, 0);
  let view = follow(p, newView(), 0.319);
  assert.deepEqual(texts(view), ["", ""]);
  view = follow(p, view, 0.321);
  assert.deepEqual(texts(view), ["", "Hello"]);
  p.setSpeed(1, 0.321);
  assert.ok(Math.abs(p.position - 0.08025) < 1e-9);
  p.advance(0.421);
  assert.ok(Math.abs(p.position - 0.18025) < 1e-9);
});

test("instant shows all at once", () => {
  const p = player(frames());
  p.setSpeed("instant", 0);
  assert.equal(follow(p, newView(), 0.001).sides.speculative.text, golden.expect.speculative.text);
});

test("paused, nothing moves; play goes on, and plays again from the start after the end", () => {
  const p = player(frames());
  p.advance(0.1);
  p.pause(0.1);
  p.advance(50);
  assert.equal(p.position, 0.1);
  p.play(50);
  p.advance(50.05);
  assert.ok(Math.abs(p.position - 0.15) < 1e-9);
  p.advance(99);
  assert.equal(p.playing, false);
  p.play(100);
  const { rewound } = p.advance(100);
  assert.equal(rewound, true);
  assert.equal(p.position, 0);
});

test("scrubbing to a moment gives the same view from either direction", () => {
  for (const moment of [0, 0.05, 0.14, 0.21, 0.3, 0.409]) {
    const forth = player(frames());
    forth.pause(0);
    forth.seek(moment);
    const back = player(frames());
    let view = follow(back, newView(), 0);
    back.pause(0);
    back.seek(9);
    view = follow(back, view, 0);
    back.seek(moment);
    view = follow(back, view, 0);
    assert.deepEqual(view, follow(forth, newView(), 0));
  }
});

test("together: sides measured one after the other start at the same moment, each at its true speed", () => {
  const p = player(measured(), "together");
  let view = follow(p, newView(), 0.999);
  assert.deepEqual(texts(view), ["", ""]);
  view = follow(p, view, 1.001);
  assert.deepEqual(texts(view), ["a", "a"]);
  view = follow(p, view, 2.001);
  assert.deepEqual(texts(view), ["a", "ab"]);
  view = follow(p, view, 4.001);
  assert.deepEqual(texts(view), ["ab", "ab"]);
  assert.equal(p.duration, 4);
  assert.deepEqual([p.runTime("standard"), p.runTime("speculative")], [14, 24]);
});

test("together: what is said about the pair stands from the start, a side's numbers come with its text", () => {
  const p = player(measured(), "together");
  let view = follow(p, newView(), 0);
  assert.equal(view.speedup.decode, 2);
  assert.equal(view.sides.speculative.metrics.output_tokens, undefined);
  view = follow(p, view, 2.001);
  assert.equal(view.sides.speculative.metrics.output_tokens, 2);
  assert.equal(view.sides.standard.metrics.output_tokens, undefined);
});

test("a replay keeps the order in which things were sent, and ends in the same view as the live run", () => {
  for (const list of [frames(), measured()])
    for (const mode of ["replay", "together"]) {
      const view = follow(player(list, mode), newView(), 99);
      assert.deepEqual(texts(view), texts(structuredClone(list).reduce(fold, newView())));
      assert.equal(view.done, true);
    }
});

test("frames that arrive while a replay plays are taken in", () => {
  const list = frames();
  const p = player(list.slice(0, 3));
  let view = follow(p, newView(), 0.05);
  for (const frame of list.slice(3)) p.add(frame);
  view = follow(p, view, 99);
  assert.equal(view.sides.speculative.text, golden.expect.speculative.text);
});

test("a run without any event plays in no time", () => {
  assert.deepEqual(schedule([{ seq: 0, t: 0, head: {} }], "replay").duration, 0);
  const p = player([{ seq: 0, t: 0.3, ev: [], done: true }]);
  assert.equal(follow(p, newView(), 0).done, true);
});

test("an end that was stamped a moment before its last, rounded token still comes after it", () => {
  const start = { k: "start", s: "standard", at: 0 };
  const events = [start, [0, 101, "all "], [0, 1, "of it"], { k: "end", s: "standard", at: 0.1016, state: "finished" }];
  const frame = parseFrame(JSON.stringify({ seq: 0, t: 0.2, ev: events }));
  const kinds = schedule([frame], "replay")
    .items.filter((i) => i.kind === "event")
    .map((i) => i.event.k);
  assert.deepEqual(kinds, ["start", "tok", "tok", "end"]);
});
