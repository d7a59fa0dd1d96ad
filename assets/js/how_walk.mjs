/**
 * A recorded run as a walk of views: for each pass of the large model what was guessed, checked and kept. Pure.
 * Walk: {start, steps: [{p: [[text|null, true|false|null], …], own: text|null}], known, method, k} (ui/how.py).
 */
import { fill } from "./engines.mjs";

const TAIL = 220;

/** All views in order as [step, phase]: three for a pass with guesses, one for an ordinary pass. */
export function frames(walk) {
  return walk.steps.flatMap((step, i) =>
    step.p.length ? ["propose", "verify", "keep"].map((phase) => [i, phase]) : [[i, "plain"]],
  );
}

/** Tokens that a pass wrote. */
export const gained = (step) => step.p.filter(([, taken]) => taken === true).length + (step.own === null ? 0 : 1);

/** The index of the first view of a pass. */
export const firstFrame = (walk, step) => frames(walk).findIndex(([at]) => at === step);

/** The pass to begin with: the first that guessed, since ordinary ones show nothing. */
export const firstGuess = (walk) =>
  Math.max(
    0,
    walk.steps.findIndex((step) => step.p.length > 0),
  );

/** Whitespace and nothing, made visible. */
export function seen(text, words) {
  if (text === null) return "?";
  if (text === "") return words.how_token_end;
  return text.replace(/\n/g, "⏎").replace(/\t/g, "⇥").replace(/^ | $/g, "␣");
}

/**
 * What one view shows: {step, steps, phase, before, guesses: [{text, mark}], kept: [text], own, say, tally}.
 * Marks: "open" (not checked yet), "taken", "refused", "cut".
 */
export function view(walk, at, words) {
  const [index, phase] = frames(walk)[at];
  const step = walk.steps[index];
  const taken = step.p.filter(([, kept]) => kept === true).map(([text]) => text);
  const checked = phase === "verify" || phase === "keep";
  const done = phase === "keep" || phase === "plain";
  const before = walk.steps.slice(0, index).flatMap((one) => written(one));
  const tokens = 1 + before.length + (done ? gained(step) : 0);
  return {
    step: index + 1,
    steps: walk.steps.length,
    phase,
    before: tail([walk.start, ...before].join("")),
    guesses: step.p.map(([text, kept]) => ({ text, mark: checked ? mark(kept) : "open" })),
    kept: done ? taken : [],
    own: done ? step.own : null,
    say: sentence(walk, step, phase, taken.length, words),
    tally: fill(words.how_tally, {
      step: index + 1,
      steps: walk.steps.length,
      tokens,
      passes: index + 1 + (done ? 1 : 0),
    }),
  };
}

/** The texts that a pass wrote. */
export const written = (step) => [
  ...step.p.filter(([, taken]) => taken === true).map(([text]) => text),
  ...(step.own === null ? [] : [step.own]),
];

const mark = (taken) => (taken === null ? "cut" : taken ? "taken" : "refused");
const tail = (text) => (text.length > TAIL ? `…${text.slice(-TAIL)}` : text);

function sentence(walk, step, phase, taken, words) {
  const own = step.own === null ? "" : seen(step.own, words);
  const values = { count: step.p.length, taken, own, gained: gained(step) };
  if (phase === "plain") return fill(words.how_say_plain, values);
  if (phase === "propose") return fill(walk.method === "ngram" ? words.how_say_lookup : words.how_say_draft, values);
  const how = taken === 0 ? "none" : taken === step.p.length ? "all" : "some";
  if (phase === "verify") return fill(words[`how_say_verify_${how}`], values);
  return fill(step.own === null ? words.how_say_cut : words[`how_say_keep_${how}`], values);
}
