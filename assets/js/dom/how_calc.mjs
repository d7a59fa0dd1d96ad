/** The calculator of the How-it-works tab: sliders, results, the chart, and the measured runs beside it. */
import { direction, figure, isNumber, percent, ratio } from "../format.mjs";
import { bestK, breakEven, expectedTokens, textbook, usual } from "../how.mjs";
import { chart, speedup } from "../how_chart.mjs";

const SVG = "http://www.w3.org/2000/svg";
const H100 = { tflops: 989, tbps: 3.35 }; // NVIDIA data sheet: dense bfloat16, and memory bandwidth (SXM)
const MOST = 4096;

/** Returns `inputs()`, the values of the sliders now; `onChange` of it is called after each change. */
export function mountCalculator({ part, find, words, lang, say, data }) {
  const slider = (name) => part.querySelector(`[data-in="${name}"]`);
  const names = ["a", "k", "c", "coverage", "batch", "room"];
  const room = H100.tflops / H100.tbps;
  slider("room").value = String(Math.log2(room));
  find("calc-room").textContent = say("how_room_info", { ...H100, room: Math.round(room) });
  const points = (data.points ?? []).map((point, i) => ({ ...point, number: i + 1 }));
  const listeners = [];
  let drawn = "";

  const inputs = () => {
    const [a, k, c, coverage, batch, carried] = names.map((name) => slider(name).valueAsNumber);
    return { a, k, c, coverage, batch: 2 ** batch, room: Math.round(2 ** carried) };
  };
  const axis = () => part.querySelector('input[name="sd-how-axis"]:checked').value;

  function update() {
    const now = inputs();
    const text = {
      a: figure(now.a, lang),
      k: now.k,
      c: figure(now.c, lang),
      coverage: percent(now.coverage, lang),
      batch: now.batch,
      room: now.room,
    };
    for (const name of names) {
      slider(name).parentElement.querySelector("output").textContent = String(text[name]);
      slider(name).setAttribute("aria-valuetext", String(text[name]));
    }
    const best = bestK(now.a, now.c, now);
    const even = breakEven(now, MOST);
    const out = {
      tokens: [expectedTokens(now.a, now.k), figure],
      textbook: [textbook(now.a, now.k, now.c), ratio],
      model: [speedup(now), ratio],
    };
    for (const [name, [value, form]] of Object.entries(out)) put(name, form(value, lang), value);
    put("best", best.k ? say("how_best", { k: best.k, speedup_x: best.speedup }) : words.how_best_none, best.k);
    put("even", even === null ? say("how_none", { most: MOST }) : String(even), even ?? "");
    part.querySelector('[data-out="model"]').dataset.slower = String(direction(speedup(now)) === "slower");
    plot(now);
    for (const listener of listeners) listener(now);
  }

  function put(name, text, value) {
    const node = part.querySelector(`[data-out="${name}"]`);
    node.textContent = text;
    node.dataset.value = String(value);
  }

  function plot(now) {
    const holder = find("calc-plot");
    const width = Math.max(280, Math.min(760, Math.round(holder.clientWidth) || 560));
    const made = chart(axis(), now, points, { width, say, lang });
    const key = JSON.stringify(made);
    if (key === drawn) return;
    drawn = key;
    const svg = element("svg", { viewBox: `0 0 ${made.width} ${made.height}`, role: "img", "aria-label": made.says });
    for (const { tag, attributes, text } of made.shapes) svg.append(element(tag, attributes, text));
    holder.replaceChildren(svg);
  }

  function take(point) {
    for (const name of ["a", "k", "c", "coverage"]) {
      // A draft that costs less than nothing is noise of the measurement; the slider ends at 0.
      if (isNumber(point[name])) slider(name).value = String(Math.max(0, point[name]));
      else if (name === "c") slider(name).value = "0";
    }
    slider("batch").value = "0";
    update();
  }

  /** The sliders begin where most recorded runs are: their draft length, and the median of their draft costs. */
  function begin() {
    const { k, c } = usual(points);
    if (k !== null) slider("k").value = String(k);
    if (c !== null) slider("c").value = String(Math.max(0, c));
  }

  for (const point of points) find("points").append(entry(point));

  function entry(point) {
    const item = document.createElement("li");
    const values = {
      title: point.title,
      a: point.a,
      coverage_share: point.coverage,
      measured_x: point.measured,
      predicted_x: point.predicted,
    };
    const known = isNumber(point.a);
    const text =
      say(known ? "how_point" : "how_point_none", values) +
      (isNumber(point.predicted) ? say("how_point_line", values) : "");
    const node = document.createElement(known ? "button" : "span");
    if (known) {
      node.type = "button";
      node.addEventListener("click", () => take(point));
    }
    node.dataset.run = point.run;
    node.dataset.value = String(point.measured);
    node.textContent = text;
    item.append(node);
    return item;
  }

  for (const node of part.querySelectorAll('[data-in], input[name="sd-how-axis"]'))
    node.addEventListener("input", update);
  new ResizeObserver(() => plot(inputs())).observe(find("calc-plot"));
  begin();
  update();
  return {
    now: inputs,
    onChange: (listener) => {
      listeners.push(listener);
      listener(inputs());
    },
  };
}

function element(tag, attributes, text) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value));
  if (text !== undefined) node.textContent = text;
  return node;
}
