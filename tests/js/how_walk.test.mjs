import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { firstFrame, firstGuess, frames, gained, seen, view } from "../../assets/js/how_walk.mjs";

const words = JSON.parse(readFileSync(new URL("../../assets/i18n/how.en.json", import.meta.url)));
const walk = {
  method: "ngram",
  k: 3,
  start: "One",
  known: true,
  steps: [
    { p: [], own: " two" },
    {
      p: [
        [" three", true],
        [" four", true],
        [" five", true],
      ],
      own: " six",
    },
    {
      p: [
        [" seven", true],
        [" ate", false],
        [null, false],
      ],
      own: " eight",
    },
    {
      p: [
        [" ten", false],
        [" x", false],
        [" y", false],
      ],
      own: " nine",
    },
    {
      p: [
        [" ten", true],
        [" eleven", true],
        [" z", null],
      ],
      own: null,
    },
  ],
};
const at = (step, phase) => frames(walk).findIndex(([i, name]) => i === step && name === phase);

test("a pass with guesses is shown in three views, an ordinary one in one", () => {
  assert.deepEqual(
    frames(walk).map(([step, phase]) => `${step}${phase[0]}`),
    ["0p", "1p", "1v", "1k", "2p", "2v", "2k", "3p", "3v", "3k", "4p", "4v", "4k"],
  );
  assert.equal(firstGuess(walk), 1);
  assert.deepEqual(frames(walk)[firstFrame(walk, 2)], [2, "propose"]);
});

test("nothing is judged before the check, and nothing is kept before the end", () => {
  const proposed = view(walk, at(2, "propose"), words);
  assert.deepEqual(
    proposed.guesses.map((guess) => guess.mark),
    ["open", "open", "open"],
  );
  assert.equal(proposed.own, null);
  const checked = view(walk, at(2, "verify"), words);
  assert.deepEqual(
    checked.guesses.map((guess) => guess.mark),
    ["taken", "refused", "refused"],
  );
  assert.deepEqual(checked.kept, []);
  const kept = view(walk, at(2, "keep"), words);
  assert.deepEqual([kept.kept, kept.own], [[" seven"], " eight"]);
  assert.equal(kept.before, "One two three four five six");
});

test("each outcome has its sentence: bonus, correction, nothing, and the end", () => {
  assert.match(view(walk, at(1, "keep"), words).say, /bonus “␣six”: 4 tokens for one pass/);
  assert.match(view(walk, at(2, "keep"), words).say, /own choice, “␣eight”: 2 tokens/);
  assert.match(view(walk, at(3, "keep"), words).say, /“␣nine”.*One token/);
  assert.match(view(walk, at(4, "keep"), words).say, /reached its end/);
  assert.match(view(walk, at(0, "plain"), words).say, /ordinary pass/);
  assert.match(view({ ...walk, method: "draft_model" }, at(1, "propose"), words).say, /draft model writes 3/);
});

test("tokens and passes are counted from the record", () => {
  assert.match(view(walk, at(1, "keep"), words).tally, /Pass 2 of 5\. So far 6 tokens, 3 passes/);
  assert.match(view(walk, at(4, "keep"), words).tally, /Pass 5 of 5\. So far 11 tokens, 6 passes/);
  assert.equal(gained(walk.steps[4]), 2);
});

test("what cannot be seen is made visible, and the unknown is no token", () => {
  assert.equal(seen("\n", words), "⏎");
  assert.equal(seen(" a", words), "␣a");
  assert.equal(seen("", words), "end");
  assert.equal(seen(null, words), "?");
});
