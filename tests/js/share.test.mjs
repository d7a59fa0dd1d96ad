/** What the page's script asks the server to change, and in which language the answer comes. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { asking, change, setShared } from "../../assets/js/dom/share.mjs";

const ROOT = "https://ex.org/demo/";

/** Runs `work` with a server that answers `reply`; returns [what was asked, what `work` says]. */
async function asked(reply, work) {
  const sent = [];
  const before = { fetch: globalThis.fetch, navigator: Object.getOwnPropertyDescriptor(globalThis, "navigator") };
  globalThis.fetch = async (address, options) => {
    sent.push([String(address), options]);
    return reply();
  };
  Object.defineProperty(globalThis, "navigator", { value: { language: "zh-CN" }, configurable: true });
  try {
    return [sent, await work()];
  } finally {
    globalThis.fetch = before.fetch;
    if (before.navigator) Object.defineProperty(globalThis, "navigator", before.navigator);
    else delete globalThis.navigator;
  }
}

test("the server is told the page's language, which ?lang= may have changed, and that the page itself asks", async () => {
  const [[[address, options]], said] = await asked(
    () => new Response('{"shared":true}'),
    () => setShared(ROOT, "a/b", true),
  );
  assert.equal(address, "https://ex.org/demo/runs/a%2Fb/shared");
  assert.deepEqual([options.method, options.body], ["PUT", '{"shared":true}']);
  assert.equal(options.headers["accept-language"], "zh-CN");
  assert.equal(options.headers["x-specdemo"], "1");
  assert.equal(options.headers["content-type"], "application/json");
  assert.deepEqual(said, { ok: true, answer: { shared: true }, error: "" });
  const [, headers] = await asked(null, async () => asking());
  assert.deepEqual(headers, { "accept-language": "zh-CN" });
});

test("a refusal is said in the server's words, else by its number, else by the browser's", async () => {
  const refusals = [
    [() => new Response('{"error":"不行。"}', { status: 503 }), "不行。"],
    [() => new Response('{"detail":"没有。"}', { status: 404 }), "没有。"],
    [() => new Response("<html>", { status: 502 }), "502"],
    [() => Promise.reject(new TypeError("network")), "network"],
  ];
  for (const [reply, error] of refusals) {
    const [, said] = await asked(reply, () => change(ROOT, "runs/x", { method: "DELETE" }));
    assert.deepEqual([said.ok, said.error], [false, error]);
  }
});
