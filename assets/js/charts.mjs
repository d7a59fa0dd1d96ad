/**
 * Charts as drawing commands: data in, a list of SVG elements and one sentence out. Pure; colours and fonts are CSS
 * classes, so light, dark and print need nothing here. Lists are thinned to what the width can show.
 *
 * @typedef {{tag: string, attributes: Record<string, string|number>, text?: string}} Shape
 * @typedef {{width: number, height: number, shapes: Shape[], says: string}} Chart
 */
import { count, duration, isNumber, percent, ratio } from "./format.mjs";

const HEIGHT = 200;
const LEFT = 44;
const RIGHT = 14;
const TOP = 26;
const BOTTOM = 34;
const POINTS = 240;

const round = (x) => Math.round(x * 10) / 10;
const shape = (tag, attributes, text) => (text === undefined ? { tag, attributes } : { tag, attributes, text });
const label = (x, y, text, kind = "tick", anchor = "middle") =>
  shape("text", { x: round(x), y: round(y), class: `sd-${kind}`, "text-anchor": anchor }, text);

/** 3 to 5 round values from 0 to at least `top`. */
export function ticks(top) {
  if (!(top > 0)) return [0, 1];
  const raw = top / 4;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999);
  const list = [];
  for (let i = 0; i * step < top + step * 0.999; i += 1) list.push(Number((i * step).toPrecision(12)));
  return list;
}

/** Every n-th point, first and last kept. */
export function thin(points, limit = POINTS) {
  if (points.length <= limit) return points;
  const step = (points.length - 1) / (limit - 1);
  return Array.from({ length: limit }, (_, i) => points[Math.round(i * step)]);
}

/** [seconds since the side's start, tokens] after each step of a side. */
export function growth(side) {
  const start = side.start ?? side.steps[0]?.at ?? 0;
  return thin(side.steps).map((step) => [Math.max(0, step.at - start), step.first + step.tokens]);
}

function frame(width, yTicks, show, xLabel, yLabel) {
  const y = (v) => HEIGHT - BOTTOM - (v / yTicks.at(-1)) * (HEIGHT - TOP - BOTTOM);
  const shapes = yTicks.flatMap((v) => [
    shape("line", {
      x1: LEFT,
      x2: width - RIGHT,
      y1: round(y(v)),
      y2: round(y(v)),
      class: v === 0 ? "sd-axis" : "sd-grid",
    }),
    label(LEFT - 6, y(v) + 4, show(v), "tick", "end"),
  ]);
  if (xLabel) shapes.push(label((LEFT + width - RIGHT) / 2, HEIGHT - 3, xLabel, "axis-name"));
  if (yLabel) shapes.push(label(0, 11, yLabel, "axis-name", "start"));
  return { y, shapes };
}

const empty = (width, says) => ({ width, height: HEIGHT, shapes: [], says });

/** Tokens over time, each side from its own start. */
export function progress(view, { width, say, lang }) {
  const lines = ["standard", "speculative"].map((name) => ({
    name,
    side: view.sides[name],
    points: growth(view.sides[name]),
  }));
  const all = lines.flatMap((line) => line.points);
  if (all.length === 0) return empty(width, say("says_progress_none"));
  const tx = ticks(Math.max(...all.map(([t]) => t), 0.1));
  const { y, shapes } = frame(
    width,
    ticks(Math.max(...all.map(([, n]) => n), 4)),
    (v) => count(v, lang),
    say("axis_seconds"),
    say("axis_tokens"),
  );
  const right = tx.at(-1);
  const x = (t) => LEFT + (t / right) * (width - LEFT - RIGHT);
  for (const t of tx) shapes.push(label(x(t), HEIGHT - BOTTOM + 14, String(t)));
  for (const { name, points } of lines) {
    if (points.length === 0) continue;
    const path = points.map(([t, n]) => `${round(x(t))},${round(y(n))}`).join(" ");
    const [t, n] = points.at(-1);
    shapes.push(shape("polyline", { points: path, class: `sd-line sd-${name}` }));
    shapes.push(shape("circle", { cx: round(x(t)), cy: round(y(n)), r: 4, class: `sd-dot-end sd-${name}` }));
  }
  const [a, b] = lines;
  const last = (line) => line.points.at(-1) ?? [0, 0];
  if (a.side.end && b.side.end && a.points.length > 0 && b.points.length > 0) {
    const [ta, na] = last(a);
    const [tb, nb] = last(b);
    return chart(
      width,
      shapes,
      say("says_progress_done", {
        a: count(na, lang),
        ta: duration(ta, lang),
        b: count(nb, lang),
        tb: duration(tb, lang),
      }),
    );
  }
  const time = Math.max(last(a)[0], last(b)[0]);
  return chart(
    width,
    shapes,
    say("says_progress", { time: duration(time, lang), a: count(last(a)[1], lang), b: count(last(b)[1], lang) }),
  );
}

const chart = (width, shapes, says) => ({ width, height: HEIGHT, shapes, says });

const circle = (x, y, r) => shape("circle", { cx: round(x), cy: round(y), r, class: "sd-reach" });

const NARROW = 46; // px a bar may claim; below it a value with a decimal would run into its neighbours

/** Upright bars with their values on top. `bars`: [name, value, class]; `marks`: values drawn as a circle beside the bar. */
function columns(width, bars, { yTicks, show, brief, tick, xLabel, yLabel, marks = [] }) {
  const { y, shapes } = frame(width, yTicks, tick ?? show, xLabel, yLabel);
  const slot = (width - LEFT - RIGHT) / bars.length;
  const bar = Math.min(slot * 0.62, 56);
  const narrow = slot < NARROW;
  const written = narrow && brief ? brief : show;
  bars.forEach(([name, value, kind], i) => {
    const middle = LEFT + slot * (i + 0.5);
    shapes.push(
      shape("rect", {
        x: round(middle - bar / 2),
        y: round(y(value)),
        width: round(bar),
        height: round(y(0) - y(value)),
        rx: 3,
        class: `sd-column ${kind}`,
      }),
    );
    shapes.push(label(middle, y(value) - 5, written(value), "value"));
    shapes.push(label(middle, HEIGHT - BOTTOM + 14, name));
    const beside = middle + bar / 2 + Math.min(9, (slot - bar) / 2);
    if (isNumber(marks[i])) shapes.push(circle(beside, y(marks[i]), narrow ? 3 : 4));
  });
  return shapes;
}

/** Share of drafts that accepted more than j tokens; the circle: among the drafts that got that far. */
export function positions(view, { width, say, lang }) {
  const { per_position: shares, per_position_conditional: reached = [] } =
    view.sides.speculative.metrics.acceptance ?? {};
  if (!shares?.length || !shares.every(isNumber)) return empty(width, say("says_positions_none"));
  const shapes = columns(
    width,
    shares.map((p, i) => [String(i + 1), p, "sd-speculative"]),
    {
      yTicks: [0, 0.25, 0.5, 0.75, 1],
      show: (v) => percent(v, lang),
      brief: (v) => `${v < 1 ? Math.min(99, Math.round(v * 100)) : 100}%`,
      tick: (v) => `${Math.round(v * 100)}%`,
      xLabel: say("axis_position"),
      marks: reached,
    },
  );
  if (reached.some(isNumber)) shapes.push(label(width - RIGHT, 11, `○ ${say("conditional")}`, "axis-name", "end"));
  const says = say("says_positions", {
    first: percent(shares[0], lang),
    k: shares.length,
    last: percent(shares.at(-1), lang),
  });
  return chart(width, shapes, says);
}

/** How many steps accepted 0, 1, … tokens, and how many had no draft at all. */
export function steps(view, { width, say, lang }) {
  const metrics = view.sides.speculative.metrics;
  const histogram = metrics.acceptance?.histogram ?? [];
  const all = histogram.reduce((sum, n) => sum + n, 0);
  if (all === 0) return empty(width, say("says_steps_none"));
  const without = isNumber(metrics.steps) ? Math.max(0, metrics.steps - (metrics.acceptance.drafting_steps ?? all)) : 0;
  const bars = [
    ...(without > 0 ? [[say("no_draft"), without, "sd-standard sd-hatched"]] : []),
    ...histogram.map((n, i) => [String(i), n, "sd-speculative"]),
  ];
  const shapes = columns(width, bars, {
    yTicks: ticks(Math.max(...bars.map(([, n]) => n)) * 1.08),
    show: (v) => count(v, lang),
    xLabel: say("axis_accepted"),
    yLabel: say("axis_steps"),
  });
  return chart(
    width,
    shapes,
    say("says_steps", {
      full: count(histogram.at(-1), lang),
      all: count(all, lang),
      none: count(histogram[0], lang),
      without: count(without, lang),
    }),
  );
}

/** The textbook's speedup, the same with this run's step costs, and what was measured; a line at 1×. */
export function theory(view, { width, say, lang }) {
  const t = view.theory;
  const rows = [
    ["textbook", t?.textbook_speedup, "sd-hollow"],
    ["corrected", t?.corrected_speedup, "sd-hollow sd-strong"],
    ["measured", t?.measured_speedup ?? view.speedup?.decode, "sd-speculative"],
  ];
  if (!rows.slice(0, 2).some(([, v]) => isNumber(v)))
    return empty(width, say.own(t, "cause") || say("says_theory_none"));
  const left = String(lang).startsWith("zh") ? 84 : 104;
  const scale = ticks(Math.max(1.2, ...rows.map(([, v]) => v ?? 0)));
  const x = (v) => left + (v / scale.at(-1)) * (width - left - RIGHT - 44);
  const shapes = scale.flatMap((v) => [
    shape("line", { x1: round(x(v)), x2: round(x(v)), y1: TOP, y2: HEIGHT - BOTTOM, class: "sd-grid" }),
    label(x(v), HEIGHT - BOTTOM + 14, `${v}×`),
  ]);
  shapes.push(shape("line", { x1: round(x(1)), x2: round(x(1)), y1: TOP - 6, y2: HEIGHT - BOTTOM, class: "sd-one" }));
  rows.forEach(([name, value, kind], i) => {
    const top = TOP + 2 + i * 46;
    shapes.push(label(left - 8, top + 19, say(name), "tick", "end"));
    if (!isNumber(value)) return;
    shapes.push(
      shape("rect", {
        x: left,
        y: top,
        width: round(Math.max(1, x(value) - left)),
        height: 28,
        rx: 3,
        class: `sd-column ${kind}`,
      }),
    );
    shapes.push(label(x(value) + 6, top + 19, ratio(value, lang), "value", "start"));
  });
  const said = Object.fromEntries(rows.map(([name, value]) => [name, ratio(value, lang)]));
  const says = [say("says_theory", said), say.own(t, "cause")].filter(Boolean).join(" ");
  return chart(width, shapes, says);
}

export const CHARTS = Object.freeze({ progress, positions, steps, theory });
