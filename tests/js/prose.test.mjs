// Markdown on the page: what is made as text arrives, counted on a page of plain objects.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createProse } from "../../assets/js/dom/prose.mjs";

let made = 0;

/** As much of an element as prose needs. */
class Node {
  constructor(tag, text = "") {
    made += 1;
    Object.assign(this, { tag, text, childNodes: [], parentNode: null, dir: "", style: { setProperty() {} } });
  }
  get lastChild() {
    return this.childNodes.at(-1) ?? null;
  }
  get lastElementChild() {
    return this.childNodes.findLast((n) => n.tag !== "#text") ?? null;
  }
  get childElementCount() {
    return this.childNodes.filter((n) => n.tag !== "#text").length;
  }
  get textContent() {
    return this.tag === "#text" ? this.text : this.childNodes.map((n) => n.textContent).join("");
  }
  set textContent(text) {
    this.childNodes.length = 0;
    if (text !== "") this.append(String(text));
  }
  append(...nodes) {
    for (const node of nodes) {
      const child = node instanceof Node ? node : new Node("#text", String(node));
      child.parentNode = this;
      this.childNodes.push(child);
    }
  }
  appendChild(node) {
    this.append(node);
    return node;
  }
  remove() {
    const { childNodes } = this.parentNode;
    childNodes.splice(childNodes.lastIndexOf(this), 1);
    this.parentNode = null;
  }
  outline() {
    return this.tag === "#text" ? this.text : [this.tag, this.dir, ...this.childNodes.map((n) => n.outline())];
  }
}
globalThis.document = { createElement: (tag) => new Node(tag) };

/** Shows a text, `step` characters at a time; the outline of the page and how many nodes it took. */
function shown(text, step) {
  const root = new Node("div");
  const prose = createProse(root, (key) => key);
  made = 0;
  for (let i = step; i < text.length + step; i += step) {
    const upTo = Math.min(i, text.length);
    prose.show(text, upTo, upTo === text.length);
  }
  return { outline: root.outline(), made, root };
}

const table = (rows) => `| a | b |\n|---|---|\n${Array.from({ length: rows }, (_, i) => `| ${i} | x |\n`).join("")}`;
const GROWING = {
  table,
  list: (n) => Array.from({ length: n }, (_, i) => `- item ${i}\n`).join(""),
  code: (n) => `\`\`\`js\n${Array.from({ length: n }, (_, i) => `let x${i} = 1;\n`).join("")}`,
};

for (const [name, text] of Object.entries(GROWING))
  test(`C01: twice the ${name} takes twice the nodes, not four times`, () => {
    const [once, twice] = [shown(text(300), 16).made, shown(text(600), 16).made];
    assert.ok(twice < 2.2 * once, `${once} and ${twice} nodes`);
    assert.ok(once < 40 * 300, `${once} nodes`);
  });

test("however the text is cut, the page is that of the whole text", () => {
  const text = `# T\n\n${table(3)}| שלום | \`a|b\` |\nend of it\n\n- a\n- b\n  c\n\n> q\n\n1 | 2\n-|-\nx\n# H\n\n\`\`\`js\nlet x;\n\`\`\`\nlast **b**`;
  const whole = shown(text, text.length).outline;
  for (const step of [1, 2, 3, 5, 7, 16]) assert.deepEqual(shown(text, step).outline, whole, `${step}`);
});

test("a table takes its direction from its first letter, and begins anew with another text", () => {
  const { root } = shown("| 1 | 2 |\n|---|---|\n| 3 | 4 |\n| שלום | x |\n", 3);
  assert.equal(root.childNodes[0].childNodes[0].dir, "rtl");
  const [head, body] = root.childNodes[0].childNodes[0].childNodes[0].childNodes;
  assert.deepEqual([head.childNodes.length, body.childNodes.length], [1, 2]);
});

test("the words of a link hold no link, and its target stands beside them", () => {
  const { outline } = shown("[http://good.com](http://evil.org)", 4);
  const count = (node) =>
    Array.isArray(node)
      ? (node[0] === "a" ? 1 : 0) +
        node
          .slice(2)
          .map(count)
          .reduce((a, b) => a + b, 0)
      : 0;
  assert.equal(count(outline), 1);
  assert.ok(JSON.stringify(outline).includes(" (http://evil.org/)"));
});
