// Charts: what is drawn is what the view holds, and the sentence says the same.
import assert from "node:assert/strict";
import { test } from "node:test";
import { CHARTS, growth, thin, ticks } from "../../assets/js/charts.mjs";
import { newView } from "../../assets/js/frame.mjs";
import { words } from "../../assets/js/words.mjs";

const how = { width: 400, say: words("en"), lang: "en" };
const step = (first, tokens, at) => ({ first, tokens, at, drafted: null, accepted: null });

/** Standard: 1 token each 0.1 s from second 10; speculative: 4 each 0.1 s from second 20. */
function example() {
  const view = newView();
  Object.assign(view.sides.standard, {
    start: 10,
    steps: Array.from({ length: 8 }, (_, i) => step(i, 1, 10.1 + i / 10)),
    end: {},
  });
  Object.assign(view.sides.speculative, {
    start: 20,
    steps: Array.from({ length: 2 }, (_, i) => step(4 * i, 4, 20.1 + i / 10)),
    end: {},
  });
  view.sides.speculative.metrics = {
    steps: 5,
    acceptance: {
      drafting_steps: 4,
      per_position: [0.9, 0.5, 0.25],
      per_position_conditional: [0.9, 0.55, 0.5],
      histogram: [1, 0, 2, 1],
    },
  };
  view.theory = {
    textbook_speedup: 1.17,
    corrected_speedup: 0.82,
    measured_speedup: 0.83,
    cause: "Few steps had a draft.",
  };
  return view;
}
const rects = (chart) => chart.shapes.filter((s) => s.tag === "rect");
const texts = (chart) => chart.shapes.filter((s) => s.tag === "text").map((s) => s.text);

test("nothing is drawn and the reason is said while there is no data", () => {
  for (const draw of Object.values(CHARTS)) {
    const { shapes, says } = draw(newView(), how);
    assert.deepEqual(shapes, []);
    assert.ok(says.length > 10);
  }
});

test("growth counts tokens after each step from the side's own start", () => {
  assert.deepEqual(
    growth(example().sides.speculative).map(([t, n]) => [Math.round(t * 10) / 10, n]),
    [
      [0.1, 4],
      [0.2, 8],
    ],
  );
});

test("both lines share their axes, so the faster side is the steeper one", () => {
  const chart = CHARTS.progress(example(), how);
  const [standard, speculative] = chart.shapes
    .filter((s) => s.tag === "polyline")
    .map((s) => s.attributes.points.split(" ").map((p) => p.split(",").map(Number)));
  assert.equal(standard.at(-1)[1], speculative.at(-1)[1]); // both wrote 8 tokens
  assert.ok(speculative.at(-1)[0] < standard.at(-1)[0]);
  assert.equal(chart.says.replaceAll("\u202f", " "), "Standard wrote 8 tokens in 800 ms, speculative 8 in 200 ms.");
});

test("acceptance by position: one bar a position, as high as its share, with a circle for those that got that far", () => {
  const chart = CHARTS.positions(example(), how);
  const heights = rects(chart).map((r) => r.attributes.height);
  assert.ok(Math.abs(heights[1] / heights[0] - 5 / 9) < 0.01);
  assert.equal(chart.shapes.filter((s) => s.attributes.class === "sd-reach").length, 3);
  assert.equal(
    chart.says,
    "The first drafted token is accepted in 90.0% of the drafts, the last one (number 3) in 25.0%.",
  );
});

test("eight narrow positions: whole percents, and circles that stay clear of the values beside them", () => {
  const view = example();
  const shares = [1, 0.999, 0.938, 0.938, 0.5, 0.25, 0.125, 0.062];
  Object.assign(view.sides.speculative.metrics.acceptance, { per_position: shares, per_position_conditional: shares });
  const chart = CHARTS.positions(view, { ...how, width: 320 });
  const values = chart.shapes.filter((s) => s.tag === "text" && /^\d+%$/.test(s.text ?? ""));
  assert.ok(["100%", "99%", "94%", "6%"].every((text) => values.some((s) => s.text === text)));
  const [bars, circles] = [rects(chart), chart.shapes.filter((s) => s.attributes.class === "sd-reach")];
  circles.forEach(({ attributes: { cx, r } }, i) => {
    const { x, width } = bars[i].attributes;
    assert.ok(cx - r >= x + width, "beside its bar");
    if (bars[i + 1]) assert.ok(cx + r <= bars[i + 1].attributes.x, "before the next");
  });
});

test("accepted per step: bars for 0 to k, and the steps without a draft apart", () => {
  const chart = CHARTS.steps(example(), how);
  assert.equal(rects(chart).length, 5);
  assert.ok(texts(chart).includes("no draft"));
  assert.equal(chart.says, "1 of 4 drafts were accepted in full, 1 not at all; 1 steps had no draft.");
});

test("a speedup below 1 is drawn below the line at 1 and said as it is", () => {
  const chart = CHARTS.theory(example(), how);
  const one = chart.shapes.find((s) => s.attributes.class === "sd-one").attributes.x1;
  const measured = rects(chart).at(-1).attributes;
  assert.ok(measured.x + measured.width < one);
  assert.equal(
    chart.says,
    "Formula with free checking: 1.17×; with this run's step costs: 0.82×; measured: 0.83×. Few steps had a draft.",
  );
});

test("a theory without numbers gives its cause", () => {
  const view = newView();
  view.theory = { cause: "Nothing was drafted." };
  assert.equal(CHARTS.theory(view, how).says, "Nothing was drafted.");
});

test("ticks are round, start at 0 and cover the top with 3 to 6 steps", () => {
  for (const top of [0.07, 0.3, 1, 1.7, 4, 17, 99, 160, 8000, 12345]) {
    const list = ticks(top);
    assert.ok(list[0] === 0 && list.at(-1) >= top * 0.999 && list.length >= 3 && list.length <= 6, `${top}: ${list}`);
  }
  assert.deepEqual(ticks(0), [0, 1]);
});

test("10,000 steps are thinned to what the width can show, first and last kept", () => {
  const points = Array.from({ length: 10000 }, (_, i) => [i, i]);
  const few = thin(points);
  assert.deepEqual([few.length, few[0][0], few.at(-1)[0]], [240, 0, 9999]);
});

test("no drawing holds NaN, whatever is missing", () => {
  for (const metrics of [
    {},
    { acceptance: {} },
    { acceptance: { per_position: [null], histogram: [0, 0] } },
    { acceptance: { histogram: [1] } },
  ]) {
    const view = example();
    view.sides.speculative.metrics = metrics;
    view.sides.standard.start = null;
    for (const draw of Object.values(CHARTS))
      assert.ok(!/NaN|undefined|Infinity/.test(JSON.stringify(draw(view, how))));
  }
});
