// Numbers to text: what is promised of each shown number.
import assert from "node:assert/strict";
import { test } from "node:test";
import * as f from "../../assets/js/format.mjs";
import { LANGUAGES, words } from "../../assets/js/words.mjs";

const plain = (text) => text.replaceAll("\u202f", " ");

test("a loss is shown as plainly as a win, and what reads 1.00 is neither", () => {
  assert.deepEqual(
    [2.414, 0.83, 1.004, 0.996, 1.005].map((x) => [f.ratio(x), f.direction(x)]),
    [
      ["2.41×", "faster"],
      ["0.83×", "slower"],
      ["1.00×", "equal"],
      ["1.00×", "equal"],
      ["1.01×", "faster"],
    ],
  );
});

test("what does not apply is a dash, never 0 or NaN", () => {
  for (const value of [null, undefined, NaN, Infinity, "3", {}])
    for (const text of [f.count, f.figure, f.rate, f.duration, f.percent, f.ratio, f.nats])
      assert.equal(text(value), "–");
  assert.deepEqual(f.show("acceptance.rate", null), { text: "–", value: "" });
  assert.equal(f.direction(null), null);
});

test("a shown number keeps its raw value beside the rounded text", () => {
  assert.deepEqual(f.show("speedup.decode", 2.4142135), { text: "2.41×", value: "2.4142135" });
  assert.equal(f.show("ttft_s", 0).value, "0");
});

test("durations use the unit that keeps three figures", () => {
  assert.deepEqual(
    [0.00042, 0.0421, 0.4204, 0.9996, 3.237, 12.44, 99.96, 125].map((s) => plain(f.duration(s))),
    ["0.42 ms", "42.1 ms", "420 ms", "1.00 s", "3.24 s", "12.4 s", "1 min 40 s", "2 min 5 s"],
  );
  assert.equal(plain(f.duration(3.237, "zh")), "3.24 秒");
});

test("all and nothing are said only when it is all or nothing", () => {
  assert.deepEqual(
    [1, 0.9999, 0.8055, 0.0001, 0].map((x) => f.percent(x)),
    ["100%", "99.9%", "80.6%", "0.1%", "0%"],
  );
});

test("rates and counts", () => {
  assert.deepEqual(
    [f.rate(24.06), f.rate(217.4), f.count(12345), f.figure(4.2222), f.figure(99.96)],
    ["24.1", "217", "12,345", "4.22", "100"],
  );
});

test("C10: direction comes from the first letter, digits and signs do not decide", () => {
  assert.deepEqual(["مرحبا print()", "12. שלום", "Use مرحبا", "123 …", ""].map(f.direct), [
    "rtl",
    "rtl",
    "ltr",
    null,
    null,
  ]);
});

test("tokens in sentences show their line ends, spaces and control characters", () => {
  assert.deepEqual(["\n", " ", "", "a\tb", "\u001b[31m", "\u200b", " the"].map(f.visible), [
    "⏎",
    "␣",
    "∅",
    "a⇥b",
    "␛[31m",
    "U+200B",
    " the",
  ]);
});

test("two tokens that differ only in what cannot be seen look different", () => {
  for (const [text, shown] of [
    ["  ", "␣␣"],
    [" \n", "␣⏎"],
    ["\u00a0", "U+00A0"],
    ["\u3000", "U+3000"],
    [" \u3000", "␣U+3000"],
    ["a\u00a0b", "aU+00A0b"],
    ["a b", "a b"],
    ["a\u2028", "aU+2028"],
    ["\u0085", "U+0085"],
    ["\ud83d", "U+D83D"],
    ["\ufeffa", "U+FEFFa"],
    ["中 文", "中 文"],
    ["👍🏽", "👍🏽"],
  ])
    assert.equal(f.visible(text), shown, JSON.stringify(text));
});

test("both languages have the same keys and the same places to fill in", () => {
  assert.deepEqual(Object.keys(LANGUAGES.zh).sort(), Object.keys(LANGUAGES.en).sort());
  const places = (text) => [...text.matchAll(/\{(\w+)\}/g)].map((m) => m[1]).sort();
  for (const [key, text] of Object.entries(LANGUAGES.en))
    assert.deepEqual([...new Set(places(LANGUAGES.zh[key]))], [...new Set(places(text))], key);
});

test("words fill in values as text, unknown keys stay visible, overrides win", () => {
  const say = words("zh-CN", { copy: "抄" });
  assert.equal(say("ahead", { side: say("speculative"), n: 3 }), "投机解码领先 3 个词元");
  assert.equal(say("copy"), "抄");
  assert.equal(say("nothing_like_it"), "nothing_like_it");
  assert.equal(words("en")("ahead", { side: "$&{n}", n: 1 }), "$&{n} is 1 tokens ahead");
});

test("every word that the skeleton asks for exists", async () => {
  const { readFileSync } = await import("node:fs");
  const html = readFileSync(new URL("../../assets/html/race.html", import.meta.url), "utf8");
  const keys = [...html.matchAll(/data-(?:word|word-label|tip-word)="(\w+)"/g)].map((m) => m[1]);
  assert.ok(keys.length > 30);
  for (const key of keys) assert.ok(Object.hasOwn(LANGUAGES.en, key), key);
});
