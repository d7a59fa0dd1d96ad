import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { brief, commands, facts, fill, pause, remaining, size, summary } from "../../assets/js/engines.mjs";

const words = JSON.parse(readFileSync(new URL("../../assets/i18n/en.json", import.meta.url), "utf8"));
const side = (state, more = {}) => ({ state, managed: true, eta_s: null, ...more });
const managed = (...sides) => ({ mode: "managed", sides });

test("the pill says ready only when both are", () => {
  assert.equal(summary(managed(side("ready"), side("ready")), words).state, "ready");
  assert.equal(summary(managed(side("ready"), side("dead")), words).state, "trouble");
  assert.equal(summary(managed(side("stopped"), side("ready")), words).state, "trouble");
  assert.equal(summary(null, words).state, "lost");
  assert.equal(summary({ mode: "replay", sides: [] }, words).state, "replay");
});

test("the time left is the slower engine's, and absent when one was never seen before", () => {
  const both = managed(side("loading", { eta_s: 12.4 }), side("waiting", { eta_s: 40.2 }));
  assert.equal(summary(both, words).text, "engines ready in about 40 s");
  const unknown = managed(side("loading", { eta_s: 12 }), side("loading"));
  assert.equal(summary(unknown, words).text, words.loading);
  assert.equal(remaining([side("ready"), side("loading", { eta_s: -3 })]), 1);
});

test("unknown facts have no row, and an attached engine's method is unknown", () => {
  const rows = facts({ managed: false, model: "m", method: null, version: null, base_url: "http://x" }, words);
  assert.deepEqual(
    rows.map(([key]) => key),
    ["field_model", "field_address"],
  );
  const own = facts(side("ready", { method: "ngram", k: 4, memory_bytes: 3 * 2 ** 30 }), words);
  assert.deepEqual(own.find(([key]) => key === "field_method")[1], "ngram, k = 4");
  assert.deepEqual(own.find(([key]) => key === "field_memory")[1], "3.0 GiB");
});

test("only commands that make sense are offered", () => {
  assert.deepEqual(commands("ready"), { start: false, restart: true, stop: true });
  assert.deepEqual(commands("stopped"), { start: true, restart: false, stop: false });
  assert.deepEqual(commands("stopping"), { start: false, restart: false, stop: false });
});

test("a settled pair is asked less often than a loading one", () => {
  assert.ok(pause(managed(side("ready"), side("ready"))) > pause(managed(side("ready"), side("loading"))));
  assert.ok(pause(null) > 0);
});

test("sentences keep places that have no value, sizes keep their absence", () => {
  assert.equal(fill("{a} and {b}", { a: 1 }), "1 and {b}");
  assert.equal(size(null), null);
  assert.equal(size(5 * 2 ** 20), "5 MiB");
});

test("a command line is shortened to the last two names of each folder; short ones and addresses stay", () => {
  const long = `/srv/some one/x`;
  assert.equal(
    brief("/opt/place/.venv-engine/bin/python -m vllm --model=/var/cache/specdemo/models/smol --port 8001"),
    "…/bin/python -m vllm --model=…/models/smol --port 8001",
  );
  assert.equal(brief("vllm serve owner/name --host 127.0.0.1"), "vllm serve owner/name --host 127.0.0.1");
  assert.equal(brief("http://127.0.0.1:8000/v1/chat/completions"), "http://127.0.0.1:8000/v1/chat/completions");
  assert.equal(brief(long), long);
});
