/**
 * The calculator's chart as drawing commands (see charts.mjs): speedup over acceptance, draft length or batch, with the
 * measured runs beside the line. Pure.
 */
import { ticks } from "./charts.mjs";
import { count, figure, isNumber, ratio } from "./format.mjs";
import { LONGEST, modelled, textbook } from "./how.mjs";

const HEIGHT = 280;
const LEFT = 44;
const RIGHT = 16;
const TOP = 26;
const BOTTOM = 40;
const BATCHES = [1, 2, 4, 8, 16, 32, 64, 128, 256];

export const AXES = ["a", "k", "batch"];

const round = (x) => Math.round(x * 10) / 10;
const shape = (tag, attributes, text) => (text === undefined ? { tag, attributes } : { tag, attributes, text });
const text = (x, y, words, kind, anchor = "middle") =>
  shape("text", { x: round(x), y: round(y), class: `sd-${kind}`, "text-anchor": anchor }, words);

/** The values along an axis: [x, place 0..1]. A batch doubles from tick to tick. */
function along(axis) {
  if (axis === "a") return Array.from({ length: 100 }, (_, i) => [Math.min(0.995, i / 100 + 0.005), i / 99]);
  if (axis === "k") return Array.from({ length: LONGEST }, (_, i) => [i + 1, i / (LONGEST - 1)]);
  return Array.from({ length: 81 }, (_, i) => [2 ** (i / 10), i / 80]);
}

/** Where a value lies on its axis, 0..1. */
export function place(axis, value) {
  if (axis === "a") return Math.min(1, Math.max(0, value));
  if (axis === "k") return (value - 1) / (LONGEST - 1);
  return Math.log2(value) / 8;
}

/** {model, textbook}: both lines of the calculator along an axis, as [place, speedup]. */
export function lines(axis, inputs) {
  const at = (x) => ({ ...inputs, [axis]: x });
  return {
    model: along(axis).map(([x, where]) => [where, speedup(at(x))]),
    textbook: along(axis).map(([x, where]) => [where, textbook(at(x).a, at(x).k, at(x).c)]),
  };
}

export const speedup = ({ a, k, c, coverage, batch, room }) => modelled(a, k, c, { coverage, batch, room });

/** The measured runs on this axis; single requests, so on the batch axis they all stand at 1. */
export function dots(axis, points) {
  return points
    .filter((point) => isNumber(point.measured) && isNumber(axis === "batch" ? 1 : point[axis]))
    .map((point) => ({ ...point, at: place(axis, axis === "batch" ? 1 : point[axis]) }));
}

export function chart(axis, inputs, points, { width, say, lang }) {
  const both = lines(axis, inputs);
  const marks = dots(axis, points);
  const values = [...both.model, ...both.textbook].map(([, y]) => y);
  const top = ticks(Math.max(2, ...values, ...marks.map((mark) => mark.measured)));
  const x = (where) => LEFT + where * (width - LEFT - RIGHT);
  const y = (value) => HEIGHT - BOTTOM - (value / top.at(-1)) * (HEIGHT - TOP - BOTTOM);
  const path = (list) =>
    list.map(([where, value], i) => `${i ? "L" : "M"}${round(x(where))} ${round(y(value))}`).join("");
  const shapes = [
    shape("rect", {
      x: LEFT,
      y: round(y(1)),
      width: width - LEFT - RIGHT,
      height: round(y(0) - y(1)),
      class: "sd-slower",
    }),
    ...top.flatMap((value) => [
      shape("line", {
        x1: LEFT,
        x2: width - RIGHT,
        y1: round(y(value)),
        y2: round(y(value)),
        class: value ? "sd-grid" : "sd-axis",
      }),
      text(
        LEFT - 6,
        y(value) + 4,
        `${figure(value, lang)
          .replace(/([.,]\d*?)0+$/, "$1")
          .replace(/[.,]$/, "")}×`,
        "tick",
        "end",
      ),
    ]),
    shape("line", { x1: LEFT, x2: width - RIGHT, y1: round(y(1)), y2: round(y(1)), class: "sd-even" }),
    ...marksOf(axis).map(([value, words]) => text(x(place(axis, value)), HEIGHT - BOTTOM + 17, words, "tick")),
    text((LEFT + width - RIGHT) / 2, HEIGHT - 5, say(`how_axis_${axis}`), "axis-name"),
    text(0, 12, say("how_axis_speedup"), "axis-name", "start"),
    shape("path", { d: path(both.textbook), class: "sd-line-textbook" }),
    shape("path", { d: path(both.model), class: "sd-line-model" }),
    shape("circle", { cx: round(x(place(axis, inputs[axis]))), cy: round(y(speedup(inputs))), r: 5, class: "sd-here" }),
    ...marks.flatMap((mark) => [
      shape("circle", { cx: round(x(mark.at)), cy: round(y(mark.measured)), r: 9, class: dotClass(mark, inputs) }),
      text(x(mark.at), y(mark.measured) + 4, String(mark.number), "dot-number"),
    ]),
  ];
  const says = say("how_chart_says", {
    axis: say(`how_axis_${axis}`),
    speedup: ratio(speedup(inputs), lang),
    count: count(marks.length, lang),
  });
  return { width, height: HEIGHT, shapes, says };
}

/** A dot with other draft lengths than the line's is hollow: the line is not about it. */
const dotClass = (mark, inputs) => (mark.k === inputs.k ? "sd-dot-run" : "sd-dot-run sd-dot-other");

function marksOf(axis) {
  if (axis === "a") return [0, 0.2, 0.4, 0.6, 0.8, 1].map((value) => [value, String(value)]);
  if (axis === "k") return [1, 4, 8, 12, 16].map((value) => [value, String(value)]);
  return BATCHES.filter((_, i) => i % 2 === 0).map((value) => [value, String(value)]);
}
