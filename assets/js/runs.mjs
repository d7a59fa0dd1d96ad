/**
 * What the Runs tab says of a kept run, of a page of the list, and of two runs side by side. Pure: no document, no clock.
 *
 * A run is one entry of `GET <root>/runs` (ui/run_routes.py); a comparison is the answer of `GET <root>/runs/compare`.
 */
import { fill } from "./engines.mjs";
import { ABSENT, direction, isNumber, ownTitle, ratio, show } from "./format.mjs";

export const PAGE_SIZE = 20;
const SIDES = ["standard", "speculative"];

/** "ngram, k = 4": what tells one speculative configuration from another. */
export function method(run, words) {
  if (run.method === "none") return words.run_standard_only;
  const name = run.method || words.run_method_unknown;
  return isNumber(run.k) ? `${name}, k = ${run.k}` : name;
}

/** The link that opens a run, under whatever path the page is served. */
export function link(root, id) {
  return new URL(`?run=${encodeURIComponent(id)}`, root).href;
}

export function dateOf(seconds, lang) {
  const date = new Date(seconds * 1000);
  if (!isNumber(seconds) || Number.isNaN(date.getTime())) return { text: ABSENT, iso: "" };
  const locale = lang.startsWith("zh") ? "zh-CN" : "en-GB";
  return {
    text: new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" }).format(date),
    iso: date.toISOString(),
  };
}

/** The texts of one row. `slower` is null without a speedup and for 1.00×; `marks` are [class, text] of what is unusual. */
export function row(run, words) {
  if (report(run)) return { title: run.title, date: dateOf(run.stored_at, words.lang), marks: [] };
  const state = run.running ? "running" : run.state;
  const marks = [];
  if (state !== "finished") marks.push([state, words[`run_${state}`] ?? state]);
  if (run.imported) marks.push(["imported", words.run_imported]);
  if (run.kept === false && !run.running) marks.push(["loose", words.run_loose]);
  const speedup = show("speedup.decode", run.speedup, { lang: words.lang });
  return {
    title: ownTitle(run.title, words.lang) || run.id,
    about: [run.model, run.hardware].filter(Boolean).join(" · "),
    how: method(run, words),
    mode: words[`run_${run.mode}`] ?? "",
    forShow: run.badge === "race_shared",
    speedup: speedup.text,
    value: speedup.value,
    slower: { faster: false, slower: true }[direction(run.speedup)] ?? null,
    verdict: run.verdict ? (words[`verdict_${run.verdict}`] ?? run.verdict) : ABSENT,
    date: dateOf(run.imported ? run.started_at : run.stored_at, words.lang),
    marks,
  };
}

/** Where in the list a page lies: {text, newer, older}. */
export function place(offset, shown, total, words) {
  return {
    text: total > PAGE_SIZE ? fill(words.runs_total, { first: offset + 1, last: offset + shown, total }) : "",
    newer: offset > 0,
    older: offset + PAGE_SIZE < total,
  };
}

/** The sentence for an empty list. */
export function emptiness(query, words, kind = "run") {
  if (query) return fill(words.runs_none_found, { query });
  return kind === "run" ? words.runs_none : words.runs_none_results;
}

/** Where a result's report lies, and the tab that shows it; null for a run. */
export function report(entry) {
  const found = { benchmark: ["benchmarks", "bench"], validation: ["validations", "validate"] }[entry.kind];
  if (!found) return null;
  return { path: `${found[0]}/${encodeURIComponent(entry.id)}/report.html`, tab: found[1] };
}

/** Whose runs these are, and whether they last. */
export function whose(answer, words) {
  if (!answer.keeps) return words.runs_keeps_none;
  return answer.together ? words.runs_together : words.runs_private;
}

const NAMES = {
  "speedup.decode": "speedup",
  "speedup.e2e": "e2e_ratio",
  "speedup.ttft": "ttft_ratio",
  decode_tokens_per_s: "rate_final",
  ttft_s: "ttft",
  tpot_s: "tpot",
  e2el_s: "elapsed",
  output_tokens: "tokens",
  tokens_per_step: "tokens_per_step",
  "acceptance.rate": "acceptance_rate",
  "acceptance.mean_length": "mean_length",
};

/** Rows of the comparison's numbers: [name, first, second, second / first]. `say` gives the race view's words. */
export function numbers(answer, words, say) {
  return answer.numbers
    .filter(({ values }) => values.some(isNumber))
    .map(({ name, values }) => {
      const [side, ...rest] = name.split(".");
      const own = SIDES.includes(side);
      const metric = own ? rest.join(".") : name;
      const [first, second] = values;
      const both = isNumber(first) && isNumber(second) && first !== 0;
      return [
        own ? `${say(side)}: ${say(NAMES[metric])}` : say(NAMES[metric]),
        ...values.map((value) => show(metric, value, { lang: words.lang }).text),
        both ? ratio(second / first, words.lang) : ABSENT,
      ];
    });
}

/** One run's heading in a comparison: its lines. */
export function heading(side, number, words) {
  return [
    `${number}. ${ownTitle(side.title, words.lang)}`,
    [method(side, words), words[`run_${side.mode}`]].filter(Boolean).join(" · "),
    [side.model, side.hardware].filter(Boolean).join(" · "),
    side.date ? dateOf(Date.parse(side.date) / 1000, words.lang).text : "",
    side.imported ? words.run_imported : "",
  ].filter(Boolean);
}
