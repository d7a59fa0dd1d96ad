/** Markdown blocks (../markdown.mjs) on the page. Elements are made one by one, text goes in as text. */
import { direct } from "../format.mjs";
import { highlight } from "../highlight.mjs";
import { createMarkdown } from "../markdown.mjs";
import { chunk, drop } from "./lines.mjs";

const HEADING_FITS = 24; // a heading rather joins a full chunk: in a new one its margin would not collapse with the one above
const TAGS = { strong: "strong", em: "em", del: "del", code: "code" };

function make(tag, name, text) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  if (text !== undefined) element.textContent = text;
  return element;
}

function addInline(parent, nodes, say) {
  for (const node of nodes ?? []) {
    if (node.type === "text") parent.append(node.text);
    else if (node.type === "break") parent.append(document.createElement("br"));
    else if (node.type === "code") parent.append(make("code", "", node.text));
    else if (node.type === "image")
      parent.append(make("span", "sd-md-image", say("image", { alt: node.alt || node.href })));
    else if (node.type === "link") parent.append(...link(node, say));
    else addInline(parent.appendChild(make(TAGS[node.type])), node.children, say);
  }
}

/** The target stands beside the words, so that no link can pretend. */
function link(node, say) {
  const anchor = make("a");
  anchor.href = node.href;
  anchor.rel = "noopener noreferrer nofollow";
  anchor.target = "_blank";
  addInline(anchor, node.children, say);
  const shown = anchor.textContent;
  return shown === node.href || `${shown}/` === node.href
    ? [anchor]
    : [anchor, make("small", "sd-md-target", ` (${node.href})`)];
}

function cells(row, tag, parent, say) {
  const line = parent.appendChild(make("tr"));
  for (const cell of row) addInline(line.appendChild(make(tag)), cell, say);
  return line;
}

function fill(element, block, say) {
  if (block.type === "item") {
    element.style.setProperty("--level", String(block.level));
    element.append(make("span", "sd-md-marker", block.marker));
    addInline(element.appendChild(make("span")), block.inline, say);
  } else addInline(element, block.inline, say);
  const side = direct(block.source);
  if (side) element.dir = side;
}

const tagOf = (block) =>
  block.type === "heading" ? `h${Math.min(6, block.level + 2)}` : block.type === "rule" ? "hr" : "div";

/** @param {HTMLElement} root @param {(key: string, values?: object) => string} say */
export function createProse(root, say) {
  let markdown = createMarkdown();
  let views = []; // per block: {element, block, lines, state}
  let offset = 0;
  let complete = false;

  const GROWING = { code: codeLines, table: tableRows };

  function codeLines(view, block) {
    // Finished lines keep their elements; only the last line of an open block is drawn again.
    const settled = block.open ? Math.max(0, block.lines.length - 1) : block.lines.length;
    while (view.code.childNodes.length > view.settled) view.code.lastChild.remove();
    let { state } = view;
    for (let i = view.settled; i < block.lines.length; i += 1) {
      const line = view.code.appendChild(make("span", "sd-md-line"));
      const painted = highlight(block.lines[i], block.language, state);
      for (const { kind, text } of painted.pieces) line.append(kind ? make("span", `sd-hl-${kind}`, text) : text);
      if (i + 1 < block.lines.length || !block.open) line.append("\n");
      state = painted.state;
      if (i < settled) view.state = state;
    }
    view.settled = settled;
  }

  function tableRows(view, block) {
    // As with code: only the last row of an open table is drawn again.
    if (view.head === undefined) {
      const table = view.element.appendChild(make("table"));
      view.head = table.appendChild(make("thead"));
      view.body = table.appendChild(make("tbody"));
    }
    const kept = Math.min(view.settled, block.rows.length);
    while (view.body.childNodes.length > Math.max(0, kept - 1)) view.body.lastChild.remove();
    if (kept === 0) view.head.textContent = "";
    for (let i = kept; i < block.rows.length; i += 1) {
      const line = cells(block.rows[i], i === 0 ? "th" : "td", i === 0 ? view.head : view.body, say);
      const side = view.element.dir ? null : direct(line.textContent);
      if (side) view.element.dir = side;
    }
    view.settled = block.open ? Math.max(0, block.rows.length - 1) : block.rows.length;
  }

  const same = (view, block) => view.block === block && view.source === block.source && view.open === block.open;

  function draw(from) {
    while (views.length > markdown.blocks.length) drop(views.pop().element);
    for (let i = from; i < markdown.blocks.length; i += 1) {
      const block = markdown.blocks[i];
      let view = views[i];
      if (view && same(view, block)) continue;
      if (view && (view.block !== block || view.type !== block.type || !(block.type in GROWING))) {
        for (const old of views.splice(i)) drop(old.element);
        view = undefined;
      }
      if (view === undefined) {
        const element = make(tagOf(block), `sd-md sd-md-${block.type}`);
        view = { element, block, type: block.type, settled: 0, state: null };
        if (block.type === "code") {
          element.dir = "ltr";
          if (block.language) element.append(make("small", "sd-md-language", block.language));
          view.code = element.appendChild(make("pre")).appendChild(make("code"));
        }
        chunk(root, block.type === "heading" ? HEADING_FITS : 0).append(element);
        views.push(view);
      }
      if (block.type in GROWING) GROWING[block.type](view, block);
      else {
        fill(view.element, block, say);
        view.source = block.source;
        view.open = block.open;
      }
    }
  }

  /** The text up to `shown`; `ended`: it is complete. */
  function show(text, shown, ended) {
    if (shown < offset) clear();
    if (shown > offset) {
      const from = markdown.push(text.slice(offset, shown));
      offset = shown;
      draw(from);
    }
    if (ended && !complete && offset === text.length) {
      complete = true;
      draw(markdown.finish());
    }
  }

  function clear() {
    root.textContent = "";
    markdown = createMarkdown();
    views = [];
    offset = 0;
    complete = false;
  }

  return { show, clear };
}
