/**
 * Blocks of text that grow. They stand in chunks: whoever passes over the text in each frame (layout, paint, a pointer)
 * meets a few chunks and the last one's blocks, not every block there is.
 *
 * Long paragraphs. A browser lays out a paragraph as a whole at each change, so a line that never ends would cost more
 * with every token. A paragraph over LIMIT spans is therefore cut where the browser has broken the line anyway: nothing
 * on the screen moves, and only the last part is laid out again. When the width changes the parts are joined first.
 */
import { direct } from "../format.mjs";

const LIMIT = 300; // spans of a block that may still grow ...
const SLACK = 60; // ... and so many more, in which a line surely begins
const NEXT_LINE = 12; // px: this much lower is another line, however high an emoji is

const BLOCKS_A_CHUNK = 24;

export const make = (name) => Object.assign(document.createElement("div"), { className: name });

/** The chunk that the next block goes into. @param {number} more  how many blocks over the usual it may hold */
export function chunk(root, more = 0) {
  const last = root.lastElementChild;
  return last?.childElementCount < BLOCKS_A_CHUNK + more ? last : root.appendChild(make("sd-chunk"));
}

/** Takes a block out, and its chunk when that was the last one in it. */
export function drop(block) {
  const home = block.parentNode;
  block.remove();
  if (home.childElementCount === 0) home.remove();
}

/** Plain text that only grows, a block a line: what is shown is never laid out again. @param {HTMLElement} root */
export function createPlain(root) {
  let from = null; // whose text it is
  let shown = 0;
  let block = null;
  return (owner, text) => {
    if (owner !== from || text.length < shown) {
      root.textContent = "";
      [from, shown, block] = [owner, 0, null];
    }
    if (text.length === shown) return;
    for (const line of text.slice(shown).match(/[^\n]*\n|[^\n]+/g)) {
      block ??= chunk(root).appendChild(make("sd-thought"));
      block.append(line);
      if (line.endsWith("\n")) block = null;
    }
    shown = text.length;
  };
}

export const isLong = (block) => block.childElementCount > LIMIT + SLACK;

/** Top of the first and of the last line box of a span. */
function tops(span) {
  const boxes = span.getClientRects();
  return boxes.length > 0 ? [boxes[0].top, boxes[boxes.length - 1].top] : null;
}

/** Where a line begins at or inside this span: 0, the index of a character, or null. */
function lineStart(before, span) {
  const a = tops(before);
  const b = tops(span);
  if (a === null || b === null) return null;
  if (b[0] - a[1] > NEXT_LINE) return 0;
  if (b[1] - b[0] <= NEXT_LINE) return null;
  // " word": the space stays at the end of its line, the word begins the next one.
  const at = /^[ \t]+/.exec(span.textContent)?.[0].length ?? 0;
  if (at === 0 || at >= span.textContent.length) return null;
  const range = document.createRange();
  range.setStart(span.firstChild, at);
  range.setEnd(span.firstChild, at + 1);
  return range.getBoundingClientRect().top - b[0] > NEXT_LINE ? at : null;
}

/** All places to cut, read before anything is moved, so that the browser lays out once. */
function places(block) {
  const spans = block.children;
  const found = [];
  for (let i = LIMIT; i < spans.length; i += 1) {
    const at = lineStart(spans[i - 1], spans[i]);
    if (at === null) continue;
    found.push([spans[i], at]);
    i += LIMIT;
  }
  return found;
}

/**
 * Cuts a long block.
 * @param {(span: HTMLElement, at: number) => HTMLElement} split  splits a span's text and returns the new second half
 * @returns {HTMLElement} the part that goes on growing
 */
export function cut(block, split) {
  const direction = block.dir || (direct(block.textContent.slice(0, 2000)) ?? "ltr");
  for (const [span, at] of places(block).reverse()) {
    const first = at === 0 ? span : split(span, at);
    const part = make("sd-block sd-part");
    part.dir = direction; // the paragraph's, whatever letter this part begins with
    const range = document.createRange();
    range.setStartBefore(first);
    range.setEndAfter(block.lastChild);
    part.append(range.extractContents());
    block.after(part);
  }
  let last = block;
  while (last.nextElementSibling?.classList.contains("sd-part")) last = last.nextElementSibling;
  return last;
}

/** Joins the parts of all paragraphs again, because the lines will break elsewhere. @returns {HTMLElement[]} paragraphs */
export function join(root) {
  const joined = new Set();
  for (const part of [...root.querySelectorAll(".sd-part")]) {
    const block = part.previousElementSibling;
    block.append(...part.childNodes);
    part.remove();
    joined.add(block);
  }
  return [...joined];
}
