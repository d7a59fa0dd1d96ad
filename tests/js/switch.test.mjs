import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { costs, differs, fitting, label, progress, startSeconds } from "../../assets/js/switch.mjs";

const read = (name) => JSON.parse(readFileSync(new URL(`../../assets/i18n/${name}.json`, import.meta.url)));
const words = { ...read("en"), ...read("switch.en") };
const ngram = { name: "ngram", method: "ngram", k: 8, extra_bytes: 0, memory_bytes: 2 ** 30, start_s: [[3, 29.6]] };
const draft = {
  name: "draft_model",
  method: "draft_model",
  k: 5,
  draft: "small",
  extra_bytes: 24 * 2 ** 20,
  start_s: [],
};
const off = { name: "none", method: null, k: null, extra_bytes: 0, memory_bytes: null, start_s: [[0, 25]] };

const answer = (state, more = {}, current = { name: "ngram", method: "ngram", k: 8 }) => ({
  sides: [
    { side: "standard", state: "ready" },
    { side: "speculative", state, seconds: 12.7, ...more },
  ],
  switch: { current, former: null, choices: [ngram, draft, off], k_limits: [1, 8] },
});

test("a configuration is named with its k", () => {
  assert.equal(label({ name: "ngram", k: 4 }, words), "n-gram, k = 4");
  assert.equal(label({ name: "none", k: null }, words), "off (A/A)");
  assert.equal(label({ name: "configured", method: "eagle3", k: 3 }, words), "as configured (eagle3), k = 3");
  assert.equal(label(null, words), "");
});

test("costs are measured, estimated and called so, or absent", () => {
  assert.deepEqual(costs(ngram, 3, words), [
    "no extra weights in memory",
    "engine in memory: 1.0 GiB (measured after its start)",
    "start: 30 s (earlier starts here)",
  ]);
  const unknown = costs(ngram, 4, words).at(-1);
  assert.equal(unknown, "start: not measured here yet");
  assert.doesNotMatch(unknown, /\d/);
  assert.match(costs(draft, 5, words)[0], /24 MiB.*estimate/);
  assert.doesNotMatch(costs({ ...draft, extra_bytes: null }, 5, words).join(" "), /\d/);
  assert.deepEqual(costs({ ...draft, reason: "No draft model." }, 5, words), []);
  assert.equal(startSeconds(off, null), 25);
});

test("k stays within its limits, and off has none", () => {
  assert.equal(fitting(ngram, 3, [1, 8]), 3);
  assert.equal(fitting(ngram, 99, [1, 8]), 8);
  assert.equal(fitting(ngram, 0, [1, 8]), 1);
  assert.equal(fitting(draft, Number.NaN, [1, 8]), 5);
  assert.equal(fitting(off, 3, [1, 8]), null);
});

test("a restart is told with stage and seconds, from the request to the end", () => {
  const asked = { name: "ngram", k: 3 };
  assert.deepEqual(progress(answer("ready"), words), { state: "idle", text: "", clock: "" });
  assert.match(progress(answer("ready"), words, asked).text, /Stopping.*n-gram, k = 3/);
  assert.equal(progress(answer("stopping"), words, asked).state, "busy");
  const loading = progress(answer("loading", { stage: "loading weights", eta_s: 17.6 }, asked), words, asked);
  assert.equal(loading.text, "Starting with n-gram, k = 3: loading weights");
  assert.equal(loading.clock, "12 s so far, about 18 s to go");
  assert.equal(progress(answer("loading", { stage: "x", eta_s: null }), words).clock, "12 s so far");
  const failed = progress(answer("failed", { error: "No memory." }), words);
  assert.deepEqual(failed, { state: "failed", text: "No memory.", clock: "" });
  assert.equal(progress({ ...answer("loading"), switch: null }, words).state, "idle");
});

test("sentences of the server are said in the visitor's language where it is known", () => {
  const chinese = { ...words, own: (_holder, field) => ({ stage: "加载权重", error: "内存不足。" })[field] };
  assert.match(progress(answer("loading", { stage: "loading weights" }), chinese).text, /加载权重/);
  assert.equal(progress(answer("failed", { error: "No memory." }), chinese).text, "内存不足。");
});

test("the same configuration again changes nothing, unless the engine failed", () => {
  assert.equal(differs(answer("ready"), "ngram", 8), false);
  assert.equal(differs(answer("ready"), "ngram", 4), true);
  assert.equal(differs(answer("ready"), "none", null), true);
  assert.equal(differs(answer("failed"), "ngram", 8), true);
});
