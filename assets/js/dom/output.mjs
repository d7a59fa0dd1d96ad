/**
 * One side's text on the page. Tokens become spans by textContent alone, appended to block elements; a new block begins
 * only after a line end, so the browser lays out the last block and nothing else. What is shown is never touched again.
 */
import { beginsStep, originOf } from "../frame.mjs";
import { chunk, cut, drop, isLong, join, make } from "./lines.mjs";

const NEAR_BOTTOM = 40; // px: closer than this, the text follows its end
const LONGEST_PIECE = 400; // characters of one span: growing it means shaping all of it again
const SPANS_A_FRAME = 500; // a late viewer's thousands of tokens come over several frames, none of them long

const NAMES = { d: "sd-tok sd-draft", t: "sd-tok", u: "sd-tok sd-unknown", m: "sd-tok sd-mixed" };
const nameOf = (side, token) => NAMES[originOf(token)] + (beginsStep(side, token) ? " sd-step" : "");

/**
 * @param {HTMLElement} root the data-role="output" element
 * @param {(following: boolean) => void} onFollowing told when the reader leaves the end or is back at it
 */
export function createOutput(root, onFollowing = () => {}) {
  let pieces = []; // {span, token, start}: a token that goes over a line end has two
  let offset = 0; // UTF-16 units shown
  let index = 0; // token being written
  let done = 0; // units of it that are shown
  let block = null;
  let stick = true;
  let moved = false; // written since the last settle()

  root.addEventListener(
    "scroll",
    () => setStick(root.scrollHeight - root.scrollTop - root.clientHeight < NEAR_BOTTOM),
    { passive: true },
  );

  function setStick(value) {
    if (value === stick) return;
    stick = value;
    onFollowing(value);
  }

  // Another width breaks the lines elsewhere: long paragraphs are joined and cut anew.
  let width = 0;
  new ResizeObserver(() => {
    if (root.clientWidth === width) return;
    width = root.clientWidth;
    const grown = join(root).filter(isLong);
    for (const paragraph of grown) cut(paragraph, split);
    if (block !== null && pieces.length > 0) block = pieces.at(-1).span.parentNode;
  }).observe(root);

  /** Cuts a span's text in two; the second half is a piece of the same token. */
  function split(span, at) {
    const i = pieces.findLastIndex((piece) => piece.span === span);
    const half = span.cloneNode(false);
    half.classList.remove("sd-step");
    half.tokenIndex = span.tokenIndex;
    half.append(span.firstChild.splitText(at));
    span.after(half);
    pieces.splice(i + 1, 0, { span: half, token: pieces[i].token, start: pieces[i].start + at });
    return half;
  }

  function addPiece(side, token, text) {
    block ??= chunk(root).appendChild(make("sd-block"));
    const span = document.createElement("span");
    span.className = nameOf(side, token);
    if (done > 0) span.classList.remove("sd-step"); // a later part of a token begins no step
    span.tokenIndex = index;
    span.textContent = text;
    block.append(span);
    pieces.push({ span, token: index, start: offset });
  }

  /** Appends to the piece being written, or begins one; a cluster that goes over a token's end stays in one piece. */
  function write(side, token, text, joins) {
    const last = pieces.at(-1);
    const grows = done > 0 && last?.token === index && last.span.firstChild.length < LONGEST_PIECE;
    if (block !== null && last && (joins || grows)) last.span.firstChild.appendData(text);
    else addPiece(side, token, text);
    offset += text.length;
    done += text.length;
    if (text.endsWith("\n")) block = null;
  }

  /**
   * Shows the side's text up to `shown` units; says whether all of it is on the page now.
   * @param {import("../frame.mjs").SideView} side
   * @param {(offset: number) => boolean} isBoundary  does a grapheme cluster end here?
   */
  function show(side, shown, isBoundary) {
    if (shown < offset) rewind(side, shown);
    const before = pieces.length;
    const began = offset;
    while (offset < shown && index < side.tokens.length && pieces.length - before < SPANS_A_FRAME) {
      const token = side.tokens[index];
      const joins = done === 0 && token.text !== "" && offset > 0 && !isBoundary(offset);
      let rest = token.text.slice(done, done + shown - offset);
      while (rest !== "") {
        const cut = rest.indexOf("\n") + 1 || rest.length;
        write(side, token, rest.slice(0, cut), joins);
        rest = rest.slice(cut);
      }
      if (done >= token.text.length) {
        index += 1;
        done = 0;
      }
    }
    moved ||= offset > began;
    return offset >= shown;
  }

  /** What needs the layout. Called when both sides' texts are written, so that the browser lays out once a frame. */
  function settle() {
    if (!moved) return;
    moved = false;
    if (block !== null && isLong(block)) block = cut(block, split);
    if (stick) root.scrollTop = root.scrollHeight;
  }

  /** Back to `shown` units: the end is cut off, the beginning stays as it is. */
  function rewind(side, shown) {
    while (pieces.length > 0 && pieces.at(-1).start >= shown) {
      const { span } = pieces.pop();
      const parent = span.parentNode;
      span.remove();
      if (parent?.childNodes.length === 0) drop(parent);
    }
    const last = pieces.at(-1);
    if (last) {
      const text = last.span.firstChild;
      text.data = text.data.slice(0, shown - last.start);
      block = text.data.endsWith("\n") ? null : last.span.parentNode;
    } else block = null;
    offset = shown;
    index = 0;
    done = shown;
    while (index < side.tokens.length && done >= side.tokens[index].text.length)
      done -= side.tokens[index++].text.length;
  }

  function clear() {
    root.textContent = "";
    pieces = [];
    offset = 0;
    index = 0;
    done = 0;
    block = null;
    setStick(true);
  }

  /** After the exact assignment came: classes only, the text stays. */
  function repaint(side) {
    let before = -1;
    for (const { span, token } of pieces) {
      if (!side.tokens[token]) continue;
      const name =
        token === before ? nameOf(side, side.tokens[token]).replace(" sd-step", "") : nameOf(side, side.tokens[token]);
      before = token;
      if (span.className !== name) span.className = name;
    }
  }

  return {
    show,
    settle,
    /** The element's content was changed from outside: its end is followed at the next settle(). */
    touched() {
      moved = true;
    },
    clear,
    repaint,
    /** The span that a token begins with. */
    spanOf: (token) => pieces.find((piece) => piece.token === token)?.span,
    follow() {
      setStick(true);
      root.scrollTop = root.scrollHeight;
    },
    get shown() {
      return offset;
    },
  };
}
