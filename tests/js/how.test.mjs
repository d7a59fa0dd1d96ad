import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import {
  bestK,
  breakEven,
  draws,
  expectedTokens,
  generator,
  lessons,
  modelled,
  rejection,
  shown,
  textbook,
  usual,
} from "../../assets/js/how.mjs";
import { chart, dots, lines, place } from "../../assets/js/how_chart.mjs";

const cases = JSON.parse(readFileSync(new URL("../golden/how.json", import.meta.url)));
const near = (got, wanted) => assert.ok(Math.abs(got - wanted) <= 1e-12 * Math.abs(wanted), `${got} is not ${wanted}`);

test("the page's formulas give the values of core/theory.py", () => {
  assert.ok(cases.length > 20);
  for (const { a, k, c, coverage, batch, room, ...wanted } of cases) {
    near(expectedTokens(a, k), wanted.expected);
    near(textbook(a, k, c), wanted.textbook);
    near(modelled(a, k, c, { coverage, batch, room }), wanted.modelled);
  }
});

test("the best k is better than its neighbours, and none where drafting costs more than it gives", () => {
  const best = bestK(0.7, 0.1);
  assert.ok(best.k > 1 && best.k < 16);
  for (const k of [best.k - 1, best.k + 1]) assert.ok(modelled(0.7, k, 0.1) < best.speedup);
  assert.deepEqual(bestK(0.1, 0.3), { k: 0, speedup: 1 });
});

test("the batch from which nothing is gained is the first such batch", () => {
  const inputs = { a: 0.8, k: 4, c: 0.05, coverage: 1, room: 295 };
  const batch = breakEven(inputs);
  assert.ok(modelled(0.8, 4, 0.05, { ...inputs, batch }) <= 1);
  assert.ok(modelled(0.8, 4, 0.05, { ...inputs, batch: batch - 1 }) > 1);
  assert.equal(breakEven({ ...inputs, room: null }, 64), null);
  assert.equal(breakEven({ ...inputs, a: 0.01, c: 0.5 }), 1);
});

test("accepted and residual together are exactly p, however bad the drafter", () => {
  const p = [0.5, 0.3, 0.15, 0.05];
  for (const q of [p, [0.05, 0.1, 0.25, 0.6], [1, 0, 0, 0], [0, 0, 0, 1]]) {
    const { result, rate, accept } = rejection(p, q);
    for (const [i, share] of result.entries()) assert.ok(Math.abs(share - p[i]) < 1e-12);
    assert.ok(rate >= 0 && rate <= 1 + 1e-12);
    assert.ok(accept.every((chance) => chance >= 0 && chance <= 1));
  }
  assert.ok(Math.abs(rejection(p, p).rate - 1) < 1e-12);
  assert.equal(rejection(p, [1, 0, 0, 0]).rate, 0.5);
});

test("drawing by the rule gives p and not q", () => {
  const p = [0.5, 0.3, 0.15, 0.05];
  const q = [0.05, 0.1, 0.25, 0.6];
  const n = 20_000;
  const { counts, accepted } = draws(p, q, n, generator(7));
  assert.equal(
    counts.reduce((sum, one) => sum + one, 0),
    n,
  );
  for (const [i, share] of p.entries()) {
    const spread = 5 * Math.sqrt((share * (1 - share)) / n);
    assert.ok(Math.abs(counts[i] / n - share) < spread, `word ${i}: ${counts[i] / n}`);
  }
  assert.ok(Math.abs(accepted / n - rejection(p, q).rate) < 0.02);
  assert.deepEqual(draws(p, q, 100, generator(7)), draws(p, q, 100, generator(7)));
});

const point = (run, more) => ({
  run,
  title: { en: run, zh: run },
  k: 8,
  a: null,
  c: null,
  coverage: null,
  measured: null,
  e2e: null,
  ...more,
});

test("what the page teaches comes from measured points, and is absent without them", () => {
  const points = [
    point("good", { a: 0.99, c: 0, coverage: 0.4, measured: 4.4, e2e: 4 }),
    point("short", { a: 0.9, measured: 4.2, e2e: 3 }),
    point("bad", { a: 0.5, measured: 0.9, e2e: 0.9 }),
    point("none", { measured: 0.87 }),
  ];
  const told = lessons(points);
  assert.deepEqual(Object.fromEntries(Object.entries(told).map(([name, one]) => [name, one.run])), {
    best: "good",
    worst: "bad",
    undrafted: "none",
    short: "short",
    cost: "good",
  });
  assert.ok(Object.values(lessons([])).every((one) => one === null));
});

test("the calculator begins at what most runs did", () => {
  const runs = [
    point("a", { a: 0.9, k: 8, c: 0.02 }),
    point("b", { a: 0.8, k: 8, c: -0.01 }),
    point("c", { a: 0.8, k: 8 }),
    point("d", { a: 0.7, k: 3, c: 0.3 }),
    point("e", { k: 5 }),
  ];
  assert.deepEqual(usual(runs), { k: 8, c: 0.02 });
  assert.deepEqual(usual([]), { k: null, c: null });
});

test("numbers are written by their names", () => {
  const values = {
    rate_share: 0.661,
    speedup_x: 4.36,
    wait_s: 32.006,
    count: 6,
    length: 8.6875,
    title: { en: "A", zh: "甲" },
  };
  assert.deepEqual(shown(values, "en"), {
    rate_share: "66.1%",
    speedup_x: "4.36×",
    wait_s: "32.0\u202fs",
    count: "6",
    length: "8.69",
    title: "A",
  });
  assert.equal(shown(values, "zh").title, "甲");
});

const inputs = { a: 0.7, k: 4, c: 0.1, coverage: 1, batch: 1, room: 295 };
const drawing = { width: 600, lang: "en", say: (key) => key };
const measured = [
  { ...point("x", { a: 0.7, k: 4, measured: 2 }), number: 1 },
  { ...point("y", { a: 0.9, k: 8, measured: 5 }), number: 2 },
  { ...point("z", { measured: 0.8 }), number: 3 },
];

test("the line goes through the calculator's own value on every axis", () => {
  for (const axis of ["a", "k", "batch"]) {
    const { model, textbook: dashed } = lines(axis, inputs);
    const here = place(axis, inputs[axis]);
    const [, closest] = model.reduce((best, one) => (Math.abs(one[0] - here) < Math.abs(best[0] - here) ? one : best));
    assert.ok(Math.abs(closest - modelled(0.7, 4, 0.1)) < 0.05, axis);
    assert.ok([...model, ...dashed].every(([x, y]) => x >= 0 && x <= 1 && y > 0));
  }
});

test("measured runs stand beside the line; a run of another k is hollow, one without drafts has no place", () => {
  assert.deepEqual(
    dots("a", measured).map((dot) => dot.run),
    ["x", "y"],
  );
  assert.deepEqual(
    dots("batch", measured).map((dot) => dot.at),
    [0, 0, 0],
  );
  for (const axis of ["a", "k", "batch"]) {
    const { shapes, width, height, says } = chart(axis, inputs, measured, drawing);
    assert.ok(says);
    for (const { attributes } of shapes.filter(({ tag }) => tag === "circle")) {
      assert.ok(attributes.cx >= 0 && attributes.cx <= width && attributes.cy >= 0 && attributes.cy <= height);
    }
    assert.ok(!JSON.stringify(shapes).includes("NaN"));
  }
  const classes = chart("a", inputs, measured, drawing).shapes.map(({ attributes }) => attributes.class);
  assert.ok(classes.includes("sd-dot-run") && classes.includes("sd-dot-run sd-dot-other"));
});
