/** Single lines: what opens and closes them, and what a long one costs. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createMarkdown } from "../../assets/js/markdown.mjs";

const read = (text) => {
  const md = createMarkdown();
  md.push(text);
  md.finish();
  return md.blocks;
};

test("long lines that begin like code or a heading cost one look, not one for each space", () => {
  const long = "a ".repeat(9900);
  for (const line of [
    `\` ${long}`,
    `# a${" ".repeat(60000)}b`,
    `# a${" #".repeat(9000)}x`,
    `## ${" #x".repeat(6000)}`,
  ]) {
    const md = createMarkdown();
    const started = process.cpuUsage().user;
    md.push(line);
    for (let i = 0; i < 5; i += 1) md.push("b");
    assert.ok(process.cpuUsage().user - started < 1e6, line.slice(0, 10));
  }
});

test("a heading's closing marks and a code's own spaces are no text; a strange line end is", () => {
  for (const [line, text] of [
    ["# a #", "a"],
    ["# a ## ", "a"],
    ["# a#", "a#"],
    ["# #", "#"],
    ["# a # b", "a # b"],
    ["#  a  ", "a"],
    ["#", ""],
    ["- a\u2028b", "a\u2028b"],
    ["# a\u2028b", "a\u2028b"],
    ["` a `", "a"],
    ["`  a `", " a"],
    ["`  `", "  "],
    ["`a `", "a "],
  ])
    assert.equal(read(line)[0].inline[0]?.text ?? "", text, line);
  assert.deepEqual(
    read("# a\u2028b\n- c\u2029d").map((block) => block.type),
    ["heading", "item"],
  );
});
