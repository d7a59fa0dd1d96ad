// Markdown to data: the subset, its safety, and its steadiness while text arrives.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createMarkdown, inline, safeHref } from "../../assets/js/markdown.mjs";
import { random } from "./pacing.mjs";

const parse = (text) => {
  const md = createMarkdown();
  md.push(text);
  md.finish();
  return md.blocks;
};
const shape = (text) => parse(text).map((b) => b.type);
/** All text that a block list would show. */
const flat = (nodes = []) => nodes.map((n) => n.text ?? n.alt ?? flat(n.children)).join("");

const SAMPLE = `# Title

A *short* text with **bold \`code\`** and [a link](https://example.org/x?a=1), from $5 to $10, **not** $20.
Second line, snake_case_name and 2*3*4.

- one
- two **b**
  goes on
  1. inner

> quoted
> twice

| a | b |
|---|:-:|
| 1 | \`x\` |

\`\`\`python
def f(x):  # note
    return "a" + 'b'
\`\`\`

***
end`;

test("the subset is recognised, and nothing else", () => {
  assert.deepEqual(shape(SAMPLE), [
    "heading",
    "paragraph",
    "item",
    "item",
    "item",
    "quote",
    "table",
    "code",
    "rule",
    "paragraph",
  ]);
});

test("however the text is cut, the final blocks are those of the whole text", () => {
  const whole = parse(SAMPLE);
  const next = random(5);
  for (let round = 0; round < 200; round += 1) {
    const md = createMarkdown();
    for (let i = 0; i < SAMPLE.length; ) {
      const n = 1 + Math.floor(next() * (round % 2 ? 3 : 40));
      md.push(SAMPLE.slice(i, i + n));
      i += n;
    }
    md.finish();
    assert.deepEqual(md.blocks, whole);
  }
});

test("a closed block is never touched again", () => {
  const md = createMarkdown();
  const seen = new Map();
  for (const c of SAMPLE) {
    const from = md.push(c);
    for (const [block, text] of seen) {
      assert.equal(JSON.stringify(block), text);
      assert.ok(md.blocks.indexOf(block) <= from || md.blocks.indexOf(block) < md.blocks.length);
    }
    for (const block of md.blocks.slice(0, -2)) if (!block.open) seen.set(block, JSON.stringify(block));
  }
  assert.ok(seen.size > 5);
});

test("push tells the first block that changed: all before it are the same objects with the same content", () => {
  const md = createMarkdown();
  let before = [];
  for (const c of SAMPLE) {
    const from = md.push(c);
    const now = md.blocks.map((b) => JSON.stringify(b));
    assert.deepEqual(now.slice(0, from), before.slice(0, from));
    before = now;
  }
});

test("C06: markup, script links and images are data or literal text, whole or cut anywhere", () => {
  const hostile =
    '<img src=x onerror=alert(1)></div><script>alert(2)</script> [x](javascript:alert(3)) ![p](http://evil/p.png) <a href="data:x">';
  for (let cut = 0; cut <= hostile.length; cut += 1) {
    const [block] = parse(hostile.slice(0, cut) || "x");
    const types = JSON.stringify(block);
    assert.ok(!/"type":"(html|script)"/.test(types));
    assert.ok(!/"href":"(javascript|data)/.test(types));
  }
  const [block] = parse(hostile);
  assert.ok(
    flat(block.inline).startsWith(
      "<img src=x onerror=alert(1)></div><script>alert(2)</script> [x](javascript:alert(3))",
    ),
  );
  assert.equal(block.inline.find((n) => n.type === "image").alt, "p");
});

test("only http and https are ever linked", () => {
  for (const bad of [
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "data:text/html,x",
    "file:///etc",
    "//host/x",
    "/local",
    "vbscript:x",
    "mailto:a@b",
  ])
    assert.equal(safeHref(bad), null, bad);
  assert.equal(safeHref("https://example.org/ä"), "https://example.org/%C3%A4");
  const bare = inline("see https://example.org/a_b). Or xhttp://no");
  assert.deepEqual(
    bare.map((n) => [n.type, n.href ?? n.text]),
    [
      ["text", "see "],
      ["link", "https://example.org/a_b"],
      ["text", "). Or xhttp://no"],
    ],
  );
});

test("C08: dollar signs stay dollars", () => {
  const [block] = parse("from $5 to $10, **not** $20");
  assert.deepEqual(block.inline, [
    { type: "text", text: "from $5 to $10, " },
    { type: "strong", children: [{ type: "text", text: "not" }] },
    { type: "text", text: " $20" },
  ]);
});

test("a half fence is no text, an open fence is code at once, and a half closing fence is no code", () => {
  const md = createMarkdown();
  md.push("Look:\n``");
  assert.deepEqual(
    md.blocks.map((b) => b.type),
    ["paragraph"],
  );
  md.push("`py");
  assert.equal(md.blocks.at(-1).type, "code");
  md.push("thon\nx = 1\n``");
  assert.deepEqual([md.blocks.at(-1).language, md.blocks.at(-1).lines], ["python", ["x = 1"]]);
  md.push("`\nafter");
  assert.deepEqual(
    md.blocks.map((b) => [b.type, b.open]),
    [
      ["paragraph", false],
      ["code", false],
      ["paragraph", true],
    ],
  );
});

test("a fence that never closes keeps its code to the end", () => {
  const [, code] = parse("a\n\n```js\nlet x = `1`;\n<b>");
  assert.deepEqual(code.lines, ["let x = `1`;", "<b>"]);
});

test("an inner fence of the other mark, or a shorter one, is code", () => {
  const [code] = parse("````\n```\nx\n~~~\n````");
  assert.deepEqual(code.lines, ["```", "x", "~~~"]);
});

test("strong and code that are still open do not jump when they close", () => {
  assert.deepEqual(inline("a **bold", true), inline("a **bold**"));
  assert.deepEqual(inline("a `co", true), inline("a `co`"));
  assert.deepEqual(inline("a **bold"), [{ type: "text", text: "a **bold" }]);
});

test("no text is lost: what is shown is the source without its marks", () => {
  for (const source of [
    "a * b * c",
    "**a *b** c*",
    "__init__ and _x_",
    "`` a`b ``",
    "\\*not\\*",
    "[x] (y) ![",
    "~~no",
    "a ** b",
    "*",
    "***x***",
  ])
    for (const open of [true, false]) {
      const shown = flat(inline(source, open));
      assert.equal(shown.replace(/[*_~`\\ ]/g, ""), source.replace(/[*_~`\\ ]/g, ""), source);
    }
});

test("hostile text is read in bounded time: no mark needs a second look at the whole", () => {
  for (const piece of [
    "[",
    "![",
    "**",
    "*a",
    "`",
    "``a",
    "](",
    "_a_",
    "~~",
    "http://",
    "<",
    "> ",
    "- ",
    "|",
    "\\",
    "|`",
    "|``a`",
    "a|b\n-|-\n|``a`",
  ]) {
    const started = process.cpuUsage().user;
    const text = piece.repeat(20000 / piece.length);
    inline(text, true);
    parse(text);
    assert.ok(process.cpuUsage().user - started < 3e6, piece);
  }
});

test("ten thousand lines of code arrive line by line without reading the old ones again", () => {
  const md = createMarkdown();
  md.push("```\n");
  const { lines } = md.blocks[0];
  for (let i = 0; i < 10000; i += 1) md.push(`line ${i}\n`);
  assert.equal(md.blocks[0].lines, lines);
  assert.equal(lines.length, 10000);
});

test("C01: a table that grows by 16 characters reads its new rows, not the finished ones again", () => {
  const text = `| a | b |\n|---|---|\n${Array.from({ length: 800 }, (_, i) => `| row ${i} | \`x\` |\n`).join("")}`;
  const md = createMarkdown();
  const read = new Set(); // each reading of a row makes a new object
  let pushes = 0;
  for (let i = 0; i < text.length; i += 16, pushes += 1) {
    md.push(text.slice(i, i + 16));
    for (const row of md.blocks[0]?.rows ?? []) read.add(row);
  }
  md.finish();
  assert.equal(md.blocks[0].rows.length, 801);
  assert.ok(read.size <= 801 + pushes, `${read.size} rows were read in ${pushes} pushes`);
  assert.deepEqual(md.blocks, parse(text));
});

test("a finished row of a growing table stays the same object, however the text is cut", () => {
  const text = "| a | b |\n|---|---|\n| 1 | **x** |\n| 2 | - |\n| - | - |\n| 3 | `a|b` |\n# end";
  const md = createMarkdown();
  const known = [];
  for (const c of text) {
    md.push(c);
    const table = md.blocks.find((b) => b.type === "table");
    if (!table) continue;
    for (let i = 0; i < table.rows.length - 1; i += 1) {
      known[i] ??= table.rows[i];
      assert.equal(table.rows[i], known[i]);
    }
  }
  md.finish();
  assert.deepEqual(md.blocks, parse(text));
  assert.deepEqual(cellsOf(text), [
    ["a", "b"],
    ["1", "x"],
    ["2", "-"],
    ["-", "-"],
    ["3", "a|b"],
  ]);
});

const cellsOf = (text) =>
  parse(text)
    .find((b) => b.type === "table")
    .rows.map((row) => row.map((cell) => flat(cell)));
const oneRow = (line) => cellsOf(`| a | b |\n|---|---|\n${line}`)[1];

test("a pipe that is escaped or inside code cuts no cell", () => {
  for (const [line, cells] of [
    ["| 1 \\| 2 | 3 |", ["1 | 2", "3"]],
    ["| `x|y` | z |", ["x|y", "z"]],
    ["| `x\\|y` | z |", ["x|y", "z"]],
    ["| ``a`|b`` | z", ["a`|b", "z"]],
    ["| a ` b | c |", ["a ` b", "c"]],
    ["a | b", ["a", "b"]],
    ["| a \\|", ["a |"]],
    ["| a \\\\| b |", ["a \\", "b"]],
    ["| | b |", ["", "b"]],
    ["| a | |", ["a", ""]],
    ["||", [""]],
    ["|", [""]],
  ])
    assert.deepEqual(oneRow(line), cells, line);
});

test("a row that still grows keeps open code and strong in its last cell", () => {
  const md = createMarkdown();
  md.push("| a | b |\n|---|---|\n| **x | `y|z");
  assert.deepEqual(
    md.blocks[0].rows[1].map((cell) => cell.map((n) => n.type)),
    [["text"], ["code"]],
  );
});

test("C06: a link holds no other link, whatever its words pretend", () => {
  const links = (nodes) => nodes.flatMap((n) => [...(n.type === "link" ? [n.href] : []), ...links(n.children ?? [])]);
  for (const [source, hrefs] of [
    ["[http://good.com](http://evil.org)", ["http://evil.org/"]],
    ["[see **http://good.com** now](http://evil.org)", ["http://evil.org/"]],
    ["**[http://good.com](http://evil.org)** http://x.org", ["http://evil.org/", "http://x.org/"]],
    ["[http://good.com](javascript:x)", []],
  ])
    for (const open of [true, false]) assert.deepEqual(links(inline(source, open)), hrefs, source);
  assert.equal(flat(inline("[http://good.com](http://evil.org)")), "http://good.com");
});
