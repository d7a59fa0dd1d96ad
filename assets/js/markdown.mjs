/**
 * Markdown to blocks, as text arrives. Pure; the result is data, never HTML, so markup in a model's text stays text.
 *
 * Subset: headings, paragraphs, list items, quotes, rules, tables, fenced code; inside them code, strong, emphasis,
 * strike, and links to http(s). Images are not loaded, HTML is literal, dollar signs are literal. Once a block is closed it
 * never changes; only the open one at the end is read again, and of code and tables only its last line.
 *
 * @typedef {{type: "text"|"code"|"break", text: string} | {type: "strong"|"em"|"del", children: Inline[]}
 *   | {type: "link", href: string, children: Inline[]} | {type: "image", alt: string, href: string}} Inline
 * @typedef {object} Block
 * @property {"paragraph"|"heading"|"item"|"quote"|"rule"|"table"|"code"} type
 * @property {boolean} open       still growing
 * @property {string} source      text without the block's marks
 * @property {Inline[]} [inline]
 * @property {number} [level]     heading 1 to 6, or depth of an item from 0
 * @property {string} [marker]    "•" or "3."
 * @property {string} [language]  of code
 * @property {string[]} [lines]   of code; the last one may be unfinished while open
 * @property {Inline[][][]} [rows]  of a table, the first is its head; only the last one may still change while open
 */

const FENCE = /^( {0,8})(`{3,}|~{3,})\s*([^\s`]*)[^`]*$/;
const HEADING = /^ {0,3}(#{1,6})(?:\s+([^\n]*))?$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])(?:\s+([^\n]*))?$/;
const RULE = /^ {0,3}(?:(?:-\s*){3,}|(?:\*\s*){3,}|(?:_\s*){3,})$/;
const DIVIDER = /^\s*\|?\s*:?-{1,}:?\s*(?:\|\s*:?-{1,}:?\s*)*\|?\s*$/;
/** Half a mark at the very end: shown only when it is known what it becomes. */
const HALF = /^\s*(?:`{1,2}|~{1,2}|#{1,6}|[-*+_]{1,2}|\d{1,9}[.)]?|>)$/;
const LONGEST_INLINE = 20_000;

export function createMarkdown() {
  /** @type {Block[]} */
  const blocks = [];
  let tail = ""; // the unfinished last line
  let fence = null; // the mark that closes the open code block
  let indent = 0;
  let provisional = 0; // blocks at the end that come from `tail` and are taken back with it

  const last = () => blocks.at(-1);
  const openBlock = (block) => {
    close();
    blocks.push({ open: true, source: "", ...block });
    return last();
  };
  function close() {
    const block = last();
    if (block?.open) {
      block.open = false;
      if (block.type !== "code") settle(block);
    }
  }

  function codeLine(line) {
    const block = last();
    const mark = line.trim();
    if (mark.startsWith(fence) && /^(`+|~+)$/.test(mark)) {
      fence = null;
      block.open = false;
    } else block.lines.push(line.startsWith(" ".repeat(indent)) ? line.slice(indent) : line.trimStart());
  }

  /** @param {boolean} [more] the line may go on */
  function textLine(line, more = false) {
    const block = last();
    const grows = block?.open === true;
    const fenced = FENCE.exec(line);
    const heading = HEADING.exec(line);
    const item = ITEM.exec(line);
    if (line.trim() === "") close();
    else if (fenced) {
      openBlock({ type: "code", language: fenced[3], lines: [] });
      fence = fenced[2];
      indent = fenced[1].length;
    } else if (heading) {
      openBlock({ type: "heading", level: heading[1].length }).source = headingText(heading[2] ?? "");
      close();
    } else if (RULE.test(line)) {
      openBlock({ type: "rule" });
      close();
    } else if (/^ {0,3}>/.test(line)) {
      const text = line.replace(/^ {0,3}> ?/, "");
      if (grows && block.type === "quote") block.source += `\n${text}`;
      else openBlock({ type: "quote" }).source = text;
    } else if (item && !(grows && block.type === "paragraph" && /^(?!1[.)])\d/.test(item[2]))) {
      const marker = /\d/.test(item[2]) ? item[2].replace(")", ".") : "•";
      const level = Math.min(8, Math.floor(item[1].replaceAll("\t", "    ").length / 2));
      openBlock({ type: "item", level, marker }).source = item[3] ?? "";
    } else if (grows && block.type === "paragraph" && beginsTable(block.source, line)) {
      block.type = "table";
      block.rows = [row(block.source)];
    } else if (grows && block.type === "table") {
      block.source += `\n${line}`;
      block.rows.push(row(line, more));
    } else if (grows) block.source += `\n${block.type === "item" ? line.trimStart() : line}`;
    else openBlock({ type: "paragraph" }).source = line;
  }

  /**
   * More text; says from which block on something changed.
   * @returns {number}
   */
  function push(text) {
    const from = Math.max(0, blocks.length - 1 - provisional);
    takeBack();
    tail += text;
    const lines = tail.split("\n");
    tail = lines.pop();
    for (const line of lines) (fence === null ? textLine : codeLine)(line.replace(/\r$/, ""));
    tentative();
    return Math.max(0, Math.min(from, blocks.length - 1));
  }

  let memory = null;
  /** Shows the unfinished line as what it seems to be, in a way that can be taken back. */
  function tentative() {
    const block = last();
    memory = {
      length: blocks.length,
      fence,
      indent,
      block: block ? { ...block, ...lengths(block) } : null,
    };
    if (tail !== "") {
      if (fence !== null) {
        if (!/^\s*(?:`+|~+)\s*$/.test(tail)) codeLine(tail);
      } else if (!HALF.test(tail)) textLine(tail, true);
    }
    provisional = blocks.length - memory.length;
    if (last() && last().type !== "code") settle(last());
  }

  function takeBack() {
    if (memory === null) return;
    blocks.length = memory.length;
    ({ fence, indent } = memory);
    if (memory.block) {
      const block = last();
      const { lines, rows, ...before } = memory.block;
      for (const key of Object.keys(block)) if (!Object.hasOwn(memory.block, key)) delete block[key];
      if (lines !== undefined) block.lines.length = lines;
      if (rows !== undefined) block.rows.length = rows;
      Object.assign(block, before);
    }
    memory = null;
    provisional = 0;
  }

  /** The text is complete. @returns {number} first changed block */
  function finish() {
    const from = Math.max(0, blocks.length - 1 - provisional);
    takeBack();
    if (tail !== "") (fence === null ? textLine : codeLine)(tail);
    tail = "";
    close();
    return Math.min(from, Math.max(0, blocks.length - 1));
  }

  return { blocks, push, finish };
}

/** A heading's text without the marks that may close it. By hand: an expression would try each of many spaces. */
function headingText(text) {
  const whole = text.trimEnd();
  let end = whole.length;
  while (whole[end - 1] === "#") end -= 1;
  return end < whole.length && /\s/.test(whole[end - 1] ?? "") ? whole.slice(0, end).trimEnd() : whole;
}

/** The text of inline code: one space at both ends belongs to the marks, unless there is nothing else. */
function codeText(text) {
  const flat = text.replaceAll("\n", " ");
  return flat.startsWith(" ") && flat.endsWith(" ") && /[^ ]/.test(flat) ? flat.slice(1, -1) : flat;
}

/** Reads a block's text as a whole; code and tables were read line by line. */
function settle(block) {
  if (!["rule", "code", "table"].includes(block.type)) block.inline = inline(block.source, block.open);
}

/** What only grows is remembered by its length. */
const lengths = ({ lines, rows }) => ({ ...(lines && { lines: lines.length }), ...(rows && { rows: rows.length }) });

/** A table's line. `more`: it may go on, so its last cell is still open. */
function row(line, more = false) {
  const found = cells(line, more);
  return found.map((cell, i) => inline(cell, more && i === found.length - 1));
}

const beginsTable = (head, line) =>
  !head.includes("\n") && head.includes("|") && line.includes("-") && DIVIDER.test(line);

/** A line cut at its pipes, but for `\|` and those inside code; in code, where a mark stands for itself, `\|` is `|`. */
function cells(line, more) {
  const text = line.trim();
  if (text.length > LONGEST_INLINE) return [text];
  const found = [];
  const unclosed = new Set();
  let cell = "";
  let i = text.startsWith("|") ? 1 : 0;
  while (i < text.length) {
    const c = text[i];
    let end = i + 1;
    if (c === "|") {
      found.push(cell.trim());
      cell = "";
    } else if (c === "`") {
      while (text[end] === "`") end += 1;
      const length = end - i;
      const close = unclosed.has(length) ? -1 : closingTicks(text, end, length);
      if (close >= 0) end = close + length;
      else if (more && !unclosed.has(length)) end = text.length;
      if (close < 0) unclosed.add(length);
      cell += end - i > length ? text.slice(i, end).replaceAll("\\|", "|") : text.slice(i, end);
    } else {
      if (c === "\\" && end < text.length) end += 1;
      cell += text.slice(i, end);
    }
    i = end;
  }
  if (cell.trim() !== "" || found.length === 0 || !text.endsWith("|")) found.push(cell.trim());
  return found;
}

const LINK = /!?\[([^[\]\n]{0,500})\]\(([^()\s]{1,2000})\)/y;
const BARE = /https?:\/\/[^\s<>"'`*|\\^{}[\]()]{1,2000}[^\s<>"'`*|\\^{}[\]().,;:!?]/y;
const MARKS = { "**": "strong", __: "strong", "~~": "del", "*": "em", _: "em" };

/** An http(s) address in full, or null: no other scheme is ever linked. */
export function safeHref(text) {
  try {
    const url = new URL(text);
    return url.protocol === "http:" || url.protocol === "https:" ? url.href : null;
  } catch {
    return null;
  }
}

/**
 * One block's text. `open`: the text may go on, so strong and code that are not closed yet count as closed at the end.
 * `links`: false for the words of a link, which hold no other.
 * @returns {Inline[]}
 */
export function inline(source, open = false, links = true) {
  if (source.length > LONGEST_INLINE) return [{ type: "text", text: source }];
  const stack = [{ mark: null, children: [] }];
  const unclosed = new Set(); // lengths of backtick runs known to have no partner
  const put = (node) => stack.at(-1).children.push(node);
  const text = (value) => {
    const before = stack.at(-1).children.at(-1);
    if (before?.type === "text") before.text += value;
    else if (value !== "") put({ type: "text", text: value });
  };
  let i = 0;
  while (i < source.length) {
    const c = source[i];
    if (c === "\\" && /[!-/:-@[-`{-~]/.test(source[i + 1] ?? "")) {
      text(source[i + 1]);
      i += 2;
    } else if (c === "\n") {
      put({ type: "break", text: "\n" });
      i += 1;
    } else if (c === "`") {
      const run = /`+/y;
      run.lastIndex = i;
      const ticks = run.exec(source)[0];
      const end = unclosed.has(ticks.length) ? -1 : closingTicks(source, i + ticks.length, ticks.length);
      if (end >= 0 || (open && i + ticks.length < source.length && !unclosed.has(ticks.length))) {
        const inner = source.slice(i + ticks.length, end < 0 ? source.length : end);
        put({ type: "code", text: codeText(inner) });
        i = end < 0 ? source.length : end + ticks.length;
      } else {
        unclosed.add(ticks.length);
        text(ticks);
        i += ticks.length;
      }
    } else if (c === "[" || c === "!") i = link(source, i, put, text);
    else if (links && c === "h" && !/[\p{L}\p{N}]/u.test(source[i - 1] ?? "")) {
      BARE.lastIndex = i;
      const found = BARE.exec(source)?.[0];
      const href = found ? safeHref(found) : null;
      if (href) put({ type: "link", href, children: [{ type: "text", text: found }] });
      else text(c);
      i += href ? found.length : 1;
    } else if (c === "*" || c === "_" || c === "~") i = emphasis(source, i, stack, text);
    else {
      text(c);
      i += 1;
    }
  }
  while (stack.length > 1) {
    const { mark, children } = stack.pop();
    if (open && mark.length === 2 && children.length > 0) put({ type: MARKS[mark], children });
    else {
      text(mark);
      for (const child of children) child.type === "text" ? text(child.text) : put(child);
    }
  }
  return stack[0].children;
}

function closingTicks(source, from, length) {
  const run = /`+/g;
  run.lastIndex = from;
  for (let found = run.exec(source); found; found = run.exec(source))
    if (found[0].length === length) return found.index;
  return -1;
}

/** A link or an image at `i`, or its first character as text; returns where to go on. */
function link(source, i, put, text) {
  LINK.lastIndex = i;
  const found = source[i] === "!" && source[i + 1] !== "[" ? null : LINK.exec(source);
  if (found === null) {
    text(source[i]);
    return i + 1;
  }
  const [whole, label, target] = found;
  const href = safeHref(target);
  if (whole.startsWith("!")) put({ type: "image", alt: label, href: target });
  else if (href) put({ type: "link", href, children: inline(label, false, false) });
  else text(whole);
  return i + whole.length;
}

function emphasis(source, i, stack, text) {
  const c = source[i];
  const double = source[i + 1] === c ? c + c : null;
  const mark = double && MARKS[double] ? double : MARKS[c] ? c : null;
  if (mark === null) {
    text(c);
    return i + 1;
  }
  const before = source[i - 1] ?? " ";
  const after = source[i + mark.length] ?? " ";
  const word = /[\p{L}\p{N}]/u;
  const inside = c === "_" && word.test(before) && word.test(after); // snake_case is no emphasis
  const at = stack.findLastIndex((entry) => entry.mark === mark);
  if (at > 0 && !/\s/.test(before) && !inside) {
    while (stack.length - 1 > at) {
      const loose = stack.pop();
      stack.at(-1).children.push({ type: "text", text: loose.mark }, ...loose.children);
    }
    const { children } = stack.pop();
    stack.at(-1).children.push({ type: MARKS[mark], children });
  } else if (!/\s/.test(after) && !inside && stack.length < 12) stack.push({ mark, children: [] });
  else text(mark);
  return i + mark.length;
}
