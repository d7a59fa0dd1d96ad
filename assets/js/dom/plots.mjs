/** Drawing commands of ../charts.mjs to SVG. A chart is drawn again only when its commands changed. */
import { CHARTS } from "../charts.mjs";

const SVG = "http://www.w3.org/2000/svg";
const WIDEST = 560;

function element(tag, attributes, text) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value));
  if (text !== undefined) node.textContent = text;
  return node;
}

/** @param {HTMLElement} root the race view */
export function createPlots(root) {
  const plots = [...root.querySelectorAll("[data-chart]")]
    .filter((figure) => Object.hasOwn(CHARTS, figure.dataset.chart))
    .map((figure) => ({
      figure,
      draw: CHARTS[figure.dataset.chart],
      plot: figure.querySelector('[data-role="plot"]'),
      says: figure.querySelector('[data-role="says"]'),
      drawn: "",
      width: null,
    }));
  // The width is told, not asked for: a question would have the browser lay out the page before it is complete.
  const sizes = new ResizeObserver((entries) => {
    for (const { target, contentRect } of entries) plots.find(({ plot }) => plot === target).width = contentRect.width;
  });
  for (const { plot } of plots) sizes.observe(plot);

  function draw(view, say, lang) {
    for (const plot of plots) {
      const width = Math.max(240, Math.min(WIDEST, Math.round(plot.width ?? plot.plot.clientWidth) || WIDEST));
      const chart = plot.draw(view, { width, say, lang });
      const drawn = JSON.stringify(chart);
      if (drawn === plot.drawn) continue;
      plot.drawn = drawn;
      plot.figure.classList.toggle("sd-empty", chart.shapes.length === 0);
      plot.says.textContent = chart.says;
      const svg = element("svg", {
        viewBox: `0 0 ${chart.width} ${chart.height}`,
        role: "img",
        "aria-label": chart.says,
      });
      for (const { tag, attributes, text } of chart.shapes) svg.append(element(tag, attributes, text));
      plot.plot.replaceChildren(...(chart.shapes.length > 0 ? [svg] : []));
    }
  }

  return { draw };
}
