// Colours: text in a side's colour can be read on the page's surfaces, in light and in dark (WCAG 2, 4.5:1).
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const css = readFileSync(new URL("../../assets/css/tokens.css", import.meta.url), "utf8");
const block = (selector) => css.slice(css.indexOf(`${selector} {`)).split("}")[0];
const colour = (selector, name) => new RegExp(`--sd-${name}:\\s*(#[0-9a-f]{6})\\b`).exec(block(selector))[1];
/** Gradio's slate surfaces: page and block. */
const SURFACES = { ":root": ["#ffffff", "#f8fafc"], ".dark": ["#020617", "#0f172a"] };

function luminance(hex) {
  const [r, g, b] = [1, 3, 5].map((i) => Number.parseInt(hex.slice(i, i + 2), 16) / 255);
  const linear = [r, g, b].map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
}

function contrast(a, b) {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}

for (const [selector, surfaces] of Object.entries(SURFACES))
  for (const name of ["standard", "speculative", "good", "bad", "warn", "hl-word", "hl-text", "hl-number", "hl-call"])
    test(`${selector} ${name}: at least 4.5:1 on page and block`, () => {
      for (const surface of surfaces) {
        const ratio = contrast(colour(selector, name), surface);
        assert.ok(ratio >= 4.5, `${ratio.toFixed(2)} on ${surface}`);
      }
    });

test("blue and orange stay apart for every kind of colour blindness: their blue channels differ by over 80 of 255", () => {
  for (const selector of Object.keys(SURFACES)) {
    const blue = (name) => Number.parseInt(colour(selector, name).slice(5), 16);
    assert.ok(blue("standard") - blue("speculative") > 80);
  }
});
