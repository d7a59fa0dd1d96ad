/**
 * What the method switch says, from one answer of `GET <root>/engines`. Pure: no document, no clock.
 *
 * answer.switch: null, or {current, former|null, choices, k_limits} with the fields of core/choice.py; numbers that were
 * never measured or estimated are absent, and then no number is shown.
 */
import { fill, size } from "./engines.mjs";

const SETTLED = ["ready", "failed", "dead", "stopped"];

/** A sentence of the server's in the visitor's language; `words.own` (dom/console.mjs) knows how. */
export const owned = (holder, field, words) => words.own?.(holder, field) ?? holder[field] ?? "";

/** A configuration in a few words: "n-gram, k = 4". */
export function label(picked, words) {
  if (!picked) return "";
  const name = words[`switch_${picked.name}`] ?? picked.name;
  const shown = picked.name === "configured" ? fill(name, { method: picked.method ?? "" }) : name;
  return picked.k ? `${shown}, k = ${picked.k}` : shown;
}

/** Seconds that a start with this k took here before; null when none was seen. */
export function startSeconds(choice, k) {
  const found = (choice?.start_s ?? []).find(([length]) => length === (k ?? 0));
  return found ? found[1] : null;
}

/** What a choice costs, as sentences; what is not known says so without a number. */
export function costs(choice, k, words) {
  const list = [];
  if (choice.reason) return list;
  if (choice.extra_bytes === 0) list.push(words.switch_no_weights);
  else if (choice.extra_bytes) list.push(fill(words.switch_weights, { size: size(choice.extra_bytes) }));
  else list.push(words.switch_weights_unknown);
  if (choice.memory_bytes) list.push(fill(words.switch_memory, { size: size(choice.memory_bytes) }));
  const seconds = startSeconds(choice, k);
  list.push(seconds === null ? words.switch_start_unknown : fill(words.switch_start, { seconds: Math.round(seconds) }));
  return list;
}

/** The k that a choice may have: within the limits, its own first; null where it has none. */
export function fitting(choice, k, limits) {
  if (!choice || choice.k === null || choice.k === undefined) return null;
  const wanted = Number.isInteger(k) ? k : choice.k;
  return Math.min(limits[1], Math.max(limits[0], wanted));
}

/**
 * What happens with the speculative engine now: {state, text, clock}. `state` is "idle", "busy" or "failed"; `clock` is
 * apart from the text, which is read aloud when it changes.
 * `asked` is the configuration that this page asked for last, before the server's answers show it.
 */
export function progress(answer, words, asked = null) {
  const status = answer?.sides?.find((side) => side.side === "speculative");
  if (!status || !answer.switch) return { state: "idle", text: "", clock: "" };
  const name = label(asked ?? answer.switch.current, words);
  if (["failed", "dead"].includes(status.state) && !asked) {
    return { state: "failed", text: owned(status, "error", words) || words[`state_${status.state}`], clock: "" };
  }
  if (SETTLED.includes(status.state)) {
    const text = asked ? fill(words.switch_stopping, { name }) : "";
    return { state: asked ? "busy" : "idle", text, clock: "" };
  }
  if (status.state === "stopping") return { state: "busy", text: fill(words.switch_stopping, { name }), clock: "" };
  const stage = owned(status, "stage", words) || words[`state_${status.state}`];
  const known = typeof status.eta_s === "number";
  const times = { seconds: Math.floor(status.seconds ?? 0), left: known ? Math.max(1, Math.round(status.eta_s)) : 0 };
  const clock = fill(known ? words.switch_clock_left : words.switch_clock, times);
  return { state: "busy", text: fill(words.switch_loading, { name, stage }), clock };
}

/** Whether pressing "switch" would change anything. */
export function differs(answer, name, k) {
  const current = answer?.switch?.current;
  const status = answer?.sides?.find((side) => side.side === "speculative");
  if (!current || !status) return false;
  if (["failed", "dead"].includes(status.state)) return true;
  return current.name !== name || (current.k ?? null) !== (k ?? null);
}
