/** The race view's Chinese sentences: fetched once, and again after a failure. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { sentencesIn } from "../../assets/js/pane.mjs";

test("a failure to fetch the Chinese sentences lasts no longer than until the next run", async () => {
  const answers = [
    () => Promise.reject(new TypeError("network")),
    () => new Response("", { status: 502 }),
    () => new Response("<html>"),
    () => new Response('{"a":"甲"}'),
  ];
  let asked = 0;
  globalThis.fetch = async () => answers[asked++]();
  Object.assign(globalThis, { window: {}, document: { baseURI: "http://ex.org/" } });
  try {
    assert.equal(await sentencesIn("en"), null);
    assert.equal(asked, 0);
    for (let i = 0; i < 3; i += 1) assert.equal(await sentencesIn("zh"), null);
    for (let i = 0; i < 2; i += 1) assert.deepEqual(await sentencesIn("zh-CN"), { a: "甲" });
    assert.equal(asked, 4);
  } finally {
    delete globalThis.window;
    delete globalThis.document;
  }
});
