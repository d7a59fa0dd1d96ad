/**
 * A light highlighter, one line at a time, so that a growing block never colours a finished line again. Pure: a line and
 * the state after the line before it → pieces and the state after it. It colours; it does not judge the language.
 */

const set = (text) => new Set(text.split(" "));
const PYTHON = set(
  "and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield match case None True False self",
);
const CURLY = set(
  "abstract as async await bool boolean break byte case catch char class const continue debugger default defer delete do double else enum export extends extern false final finally float fn for from func function go goto if impl implements import in instanceof int interface let long loop map match mod mut namespace new nil null nullptr of override package private protected pub public return self short signed sizeof static string struct super switch template this throw throws trait true try type typeof undefined union unsigned use using var virtual void volatile where while yield",
);
const SHELL = set(
  "case do done elif else esac export fi for function if in local return set then unset until while echo cd sudo",
);
const SQL = set(
  "add all alter and as asc between by case create delete desc distinct drop else end exists from full group having in inner insert into is join key left like limit not null on or order outer primary references right select set table then union unique update values view when where with",
);
const DATA = set("true false null yes no");

const FAMILIES = {
  python: { words: PYTHON, line: "#", triple: true },
  curly: { words: CURLY, line: "//", block: ["/*", "*/"], tick: true },
  shell: { words: SHELL, line: "#" },
  sql: { words: SQL, line: "--", block: ["/*", "*/"], fold: true },
  data: { words: DATA, line: "#" },
  json: { words: DATA },
  css: { words: new Set(), block: ["/*", "*/"] },
  markup: { words: new Set(), block: ["<!--", "-->"] },
};
const NAMES = {
  python: "py python python3 py3 pyi",
  curly:
    "js javascript jsx mjs ts typescript tsx java c cpp c++ h hpp cs csharp c# go golang rust rs kotlin kt swift scala php dart",
  shell: "sh bash zsh shell console dockerfile makefile",
  sql: "sql postgresql mysql sqlite",
  data: "yaml yml toml ini properties",
  json: "json jsonc json5",
  css: "css scss less",
  markup: "html xml svg vue",
};
const FAMILY_OF = new Map(
  Object.entries(NAMES).flatMap(([family, names]) => names.split(" ").map((name) => [name, family])),
);

/** Lines longer than this are shown plain: colour is no help there, and the cost would be. */
const LONGEST = 2000;
const PIECE =
  /("(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?)|(\b0x[\da-fA-F]+\b|\b\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?\b)|([\p{L}_$][\p{L}\p{N}_$]*)/uy;

/**
 * @typedef {{kind: ""|"word"|"text"|"number"|"note"|"call", text: string}} Piece
 * @param {string} line  without its line end
 * @param {string} language  as after the fence
 * @param {?string} state  what ends the comment or string that the line before left open
 * @returns {{pieces: Piece[], state: ?string}}
 */
export function highlight(line, language, state = null) {
  const family = FAMILIES[FAMILY_OF.get(String(language).toLowerCase())];
  const pieces = [];
  const add = (kind, text) => {
    if (text === "") return;
    if (pieces.at(-1)?.kind === kind) pieces.at(-1).text += text;
    else pieces.push({ kind, text });
  };
  if (family === undefined || line.length > LONGEST) {
    add("", line);
    return { pieces, state };
  }
  let i = 0;
  while (i < line.length) {
    if (state !== null) {
      const end = line.indexOf(state, i);
      const stop = end < 0 ? line.length : end + state.length;
      add(state === "*/" || state === "-->" ? "note" : "text", line.slice(i, stop));
      i = stop;
      if (end >= 0) state = null;
      continue;
    }
    if (family.line && line.startsWith(family.line, i)) {
      add("note", line.slice(i));
      break;
    }
    const opened = opening(family, line, i);
    if (opened !== null) {
      add(opened.kind, opened.text);
      i += opened.text.length;
      state = opened.state;
      continue;
    }
    PIECE.lastIndex = i;
    const found = PIECE.exec(line);
    if (found === null) {
      add("", line[i]);
      i += 1;
      continue;
    }
    const [text, quoted, digits] = found;
    i += text.length;
    if (quoted !== undefined) add("text", text);
    else if (digits !== undefined) add("number", text);
    else if (family.words.has(family.fold ? text.toLowerCase() : text)) add("word", text);
    else add(line[i] === "(" ? "call" : "", text);
  }
  return { pieces, state };
}

/** The start of something that may go over the line's end: a block comment, a long string. */
function opening(family, line, i) {
  if (family.block && line.startsWith(family.block[0], i))
    return { kind: "note", text: family.block[0], state: family.block[1] };
  if (family.triple)
    for (const quote of ['"""', "'''"])
      if (line.startsWith(quote, i)) return { kind: "text", text: quote, state: quote };
  if (family.tick && line[i] === "`") return { kind: "text", text: "`", state: "`" };
  return null;
}
