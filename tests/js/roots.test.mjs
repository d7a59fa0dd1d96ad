/** C14: where the page's scripts look for their own files, whatever a proxy told the server about scheme, host and port. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { pageRoot } from "../../assets/js/dom/stream.mjs";

const MOUNTS = { mount: "pane", console_mount: "dom/console", runs_mount: "dom/runs", how_mount: "dom/how" };

/** The script that a mount's body asks for, and the root that it hands on. */
async function asked(name, window, document) {
  const body = readFileSync(new URL(`../../assets/js/${name}.js`, import.meta.url), "utf8").replace("import(", "load(");
  let href = null;
  let root = null;
  const load = async (address) => {
    href = address;
    return { mount: (given) => (root = given.root ?? null) };
  };
  const names = ["window", "document", "load", "element", "trigger", "props", "watch"];
  new Function(...names, body)(window, document, load);
  await new Promise((done) => setTimeout(done));
  return { href, root };
}

for (const [what, root, page, wanted] of [
  ["nothing lost", "https://ex.org:8443/demo", "https://ex.org:8443/demo/?lang=zh#x", "https://ex.org:8443/demo/"],
  ["https lost", "http://ex.org/demo", "https://ex.org/demo/", "https://ex.org/demo/"],
  ["port lost", "https://ex.org", "https://ex.org:8443/?run=a/b", "https://ex.org:8443/"],
  ["host lost", "http://127.0.0.1:7860/demo", "https://ex.org/demo/", "https://ex.org/demo/"],
  ["slash lost", "http://inside/demo", "https://ex.org/demo", "https://ex.org/demo/"],
  ["several parts", "http://inside/a/b", "https://[::1]:9/a/b/", "https://[::1]:9/a/b/"],
  ["only a path", "/demo", "http://ex.org/demo/", "http://ex.org/demo/"],
  ["no root told", "", "http://ex.org/demo/?run=x", "http://ex.org/demo/"],
  ["no configuration", undefined, "http://ex.org/", "http://ex.org/"],
])
  test(`C14: scripts, words and streams come from the page's own server: ${what}`, async () => {
    const window = root === undefined ? {} : { gradio_config: { root } };
    const document = { baseURI: page };
    for (const [name, script] of Object.entries(MOUNTS)) {
      const found = await asked(name, window, document);
      assert.equal(found.href, `${wanted}assets/js/${script}.mjs`, name);
      if (name !== "mount") assert.equal(found.root, wanted, name);
    }
    Object.assign(globalThis, { window, document });
    try {
      assert.equal(pageRoot(), wanted);
    } finally {
      delete globalThis.window;
      delete globalThis.document;
    }
  });
