// What the server says, in the visitor's language: the same table that Python's tests compare with the English.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { gathered } from "../../assets/js/dom/board.mjs";
import { ownTitle } from "../../assets/js/format.mjs";
import { fill } from "../../assets/js/sentences.mjs";
import { LANGUAGES, words } from "../../assets/js/words.mjs";

const read = (path) => JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8"));
const zh = read("../../assets/i18n/sentences/zh.json");
const { frames } = read("../golden/frames.json");

/** Every `say` in a value, with the object that it belongs to. */
function* told(value) {
  if (value === null || typeof value !== "object") return;
  if (value.say) yield value;
  for (const inner of Object.values(value)) yield* told(inner);
}

test("both languages of the race view have the same words with the same places", () => {
  const places = (text) => [...text.matchAll(/\{(\w+)\}/g)].map((found) => found[1]).sort();
  assert.deepEqual(Object.keys(LANGUAGES.zh), Object.keys(LANGUAGES.en));
  for (const [key, text] of Object.entries(LANGUAGES.en))
    assert.deepEqual([...new Set(places(LANGUAGES.zh[key]))], [...new Set(places(text))], key);
});

test("every sentence of the golden frames is said in Chinese, whole", () => {
  const say = words("zh-CN", {}, zh);
  let count = 0;
  for (const holder of frames.flatMap((frame) => [...told(frame)]))
    for (const [field, known] of Object.entries(holder.say)) {
      const named = Array.isArray(holder[field]) || typeof holder[field] === "object";
      for (const name of named ? Object.keys(known) : [undefined]) {
        if (name !== undefined && known[name] === null) continue;
        const text = say.own(holder, field, name);
        assert.match(text, /[\u4e00-\u9fff]/);
        assert.doesNotMatch(text, /[{}]|standard|speculative|原文/);
        count += 1;
      }
    }
  assert.ok(count >= 8, String(count));
});

test("in English the sentence itself is shown, and what is not there is empty", () => {
  const say = words("en");
  const holder = { reason: "All 5 tokens are equal.", say: { reason: ["equal_tokens", { count: "5" }] } };
  assert.equal(say.own(holder, "reason"), holder.reason);
  assert.equal(say.own(holder, "cause"), "");
  assert.equal(say.own(null, "reason"), "");
});

test("an engine's own words stay as they are, marked as a quotation in Chinese", () => {
  const own = { message: "CUDA error {x}" };
  assert.equal(words("zh", {}, zh).own(own, "message"), "原文：CUDA error {x}");
  assert.equal(words("en").own(own, "message"), "CUDA error {x}");
});

test("parts inside sentences and lists of parts are said too; a gap in the table says nothing by halves", () => {
  const failed = (side, count) => ["part_failed", { side: [`part_${side}`, {}], after: ["part_after", { count }] }];
  const both = ["part_both", { first: failed("standard", "5"), second: failed("speculative", "7") }];
  assert.equal(
    fill(["unfinished_match", { said: both, count: "3" }], zh),
    "无法判定：标准一侧在 5 个词元后失败、投机一侧在 7 个词元后失败；前 3 个词元一致。",
  );
  const problems = [["part_accepted_more", {}], "x", ["part_drafted_sum", {}]];
  assert.match(fill(["metrics_mismatch", { problems }], zh, "；"), /；x；/);
  assert.equal(fill(["unfinished_text", { said: ["part_new", {}] }], zh), null);
  assert.equal(fill(["unfinished_text", {}], zh), null);
});

test("a broken told sentence is no sentence", () => {
  for (const odd of [null, undefined, "text", [], [1], ["constructor", {}], ["equal_tokens"], ["equal_tokens", null]])
    assert.equal(fill(odd, zh), null);
});

test("notes with the same words become one that names both sides; others stay apart", () => {
  const note = (kind, message, side) => ({ kind, message, side });
  const found = gathered([
    note("warmup", "Warm.", "standard"),
    note("clumped", "Late.", "standard"),
    note("warmup", "Warm.", "speculative"),
    note("implausible", "Odd.", null),
  ]);
  assert.deepEqual(
    found.map(({ note: { kind }, sides }) => [kind, sides]),
    [
      ["warmup", ["standard", "speculative"]],
      ["clumped", ["standard"]],
      ["implausible", []],
    ],
  );
});

test("a title in two languages shows the visitor's own; one in one language is for all", () => {
  assert.equal(ownTitle("A list | 列表", "en"), "A list");
  assert.equal(ownTitle("A list | 列表", "zh-TW"), "列表");
  assert.equal(ownTitle("A list", "zh"), "A list");
  assert.equal(ownTitle(null, "en"), "");
});
