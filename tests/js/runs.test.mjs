import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import * as runs from "../../assets/js/runs.mjs";
import { words as raceWords } from "../../assets/js/words.mjs";

const read = (lang) => JSON.parse(readFileSync(new URL(`../../assets/i18n/runs.${lang}.json`, import.meta.url)));
const EN = { ...read("en"), lang: "en" };
const ZH = { ...read("zh"), lang: "zh" };
const RUN = {
  id: "abc",
  kind: "run",
  state: "finished",
  running: false,
  kept: true,
  stored_at: 1767225600,
  started_at: 0,
  title: "Say hello | 打招呼",
  model: "tiny",
  hardware: "2 cores",
  method: "ngram",
  k: 4,
  mode: "measure",
  badge: "measured",
  speedup: 1.5,
  verdict: "identical",
  shared: false,
  imported: false,
};

test("two speculative configurations read differently", () => {
  const said = [{}, { k: 6 }, { method: "draft_model" }, { method: null }, { method: "none", k: null }].map((other) =>
    runs.method({ ...RUN, ...other }, EN),
  );
  assert.deepEqual(said.slice(0, 3), ["ngram, k = 4", "ngram, k = 6", "draft_model, k = 4"]);
  assert.equal(new Set(said).size, 5);
});

test("a row shows what was measured, a loss as plainly as a win, and nothing for what does not apply", () => {
  const win = runs.row(RUN, EN);
  assert.deepEqual([win.title, win.speedup, win.value, win.slower], ["Say hello", "1.50×", "1.5", false]);
  assert.equal(runs.row(RUN, ZH).title, "打招呼");
  const loss = runs.row({ ...RUN, speedup: 0.8 }, EN);
  assert.deepEqual([loss.speedup, loss.slower], ["0.80×", true]);
  for (const speedup of [0.998, 1, 1.004]) {
    const equal = runs.row({ ...RUN, speedup }, EN);
    assert.deepEqual([equal.speedup, equal.slower], ["1.00×", null]);
  }
  const none = runs.row({ ...RUN, speedup: null, verdict: null }, EN);
  assert.deepEqual([none.speedup, none.value, none.slower, none.verdict], ["–", "", null, "–"]);
});

test("what is unusual about a run is marked", () => {
  const kinds = (other) => runs.row({ ...RUN, ...other }, EN).marks.map(([kind]) => kind);
  assert.deepEqual(kinds({}), []);
  assert.deepEqual(kinds({ state: "interrupted" }), ["interrupted"]);
  assert.deepEqual(kinds({ state: "interrupted", running: true, kept: false }), ["running"]);
  assert.deepEqual(kinds({ imported: true, kept: false }), ["imported", "loose"]);
});

test("a date that is none is no date", () => {
  for (const odd of [Number.NaN, 1e20, null, undefined, "x"]) assert.deepEqual(runs.dateOf(odd, "en").iso, "");
  assert.match(runs.dateOf(1767225600, "en").text, /202[56]/);
});

test("a link keeps the page's path and escapes the id", () => {
  assert.equal(runs.link("https://x.org/demo/", "a b&c"), "https://x.org/demo/?run=a%20b%26c");
});

test("paging offers what there is", () => {
  assert.deepEqual(runs.place(0, 5, 5, EN), { text: "", newer: false, older: false });
  assert.deepEqual(runs.place(20, 20, 50, EN), { text: "21–40 of 50", newer: true, older: true });
  assert.deepEqual(runs.place(40, 10, 50, EN), { text: "41–50 of 50", newer: true, older: false });
});

test("an empty list and whose list it is are said", () => {
  assert.notEqual(runs.emptiness("", EN), runs.emptiness("x", EN));
  assert.match(runs.emptiness("needle", ZH), /needle/);
  const whose = [
    { keeps: true, together: true },
    { keeps: true, together: false },
    { keeps: false, together: false },
  ].map((answer) => runs.whose(answer, EN));
  assert.equal(new Set(whose).size, 3);
});

test("a comparison names every number in both languages, and divides only what can be divided", () => {
  const names = [
    "speedup.decode",
    "speedup.e2e",
    "speedup.ttft",
    "standard.decode_tokens_per_s",
    "speculative.ttft_s",
    "standard.tpot_s",
    "standard.e2el_s",
    "standard.output_tokens",
    "speculative.tokens_per_step",
    "speculative.acceptance.rate",
    "speculative.acceptance.mean_length",
  ];
  const answer = { numbers: names.map((name, i) => ({ name, values: [2, i === 0 ? null : 3] })) };
  for (const [words, lang] of [
    [EN, "en"],
    [ZH, "zh"],
  ]) {
    const rows = runs.numbers(answer, words, raceWords(lang));
    for (const [name] of rows) assert.doesNotMatch(name, /_|undefined/);
    assert.deepEqual(rows[0].slice(1), ["2.00×", "–", "–"]);
    assert.equal(rows[1][3], "1.50×");
  }
  const absent = { numbers: [{ name: "speedup.ttft", values: [null, null] }] };
  assert.deepEqual(runs.numbers(absent, EN, raceWords("en")), []);
  const zero = { numbers: [{ name: "speedup.ttft", values: [0, 1] }] };
  assert.equal(runs.numbers(zero, EN, raceWords("en"))[0][3], "–");
});

test("benchmarks and validations lead to their own tabs and reports", () => {
  const found = ["benchmark", "validation", "run"].map((kind) => runs.report({ kind, id: "a/b" }));
  assert.deepEqual(found, [
    { path: "benchmarks/a%2Fb/report.html", tab: "bench" },
    { path: "validations/a%2Fb/report.html", tab: "validate" },
    null,
  ]);
  const row = runs.row({ kind: "benchmark", id: "x", title: "x", stored_at: 1767225600 }, EN);
  assert.deepEqual([row.title, row.marks], ["x", []]);
  assert.notEqual(runs.emptiness("", EN, "benchmark"), runs.emptiness("", EN));
});

test("a heading leaves out what is unknown", () => {
  const side = { title: "T", method: "none", k: null, mode: "race", model: null, hardware: null, date: null };
  assert.deepEqual(runs.heading(side, 2, EN), ["2. T", "no speculation · race"]);
  assert.ok(runs.heading({ ...side, imported: true, date: "2026-01-02T03:04+00:00" }, 1, EN).length === 4);
});
