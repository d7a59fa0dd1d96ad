/**
 * The theory of speculative decoding as numbers: what the How-it-works page computes while one looks. Pure. The same
 * formulas as core/theory.py; tests/golden/how.json holds both to the same values.
 */
import { count, figure, isNumber, percent, ratio, duration } from "./format.mjs";

/** Most draft tokens that the search for the best k tries. */
export const LONGEST = 16;

/** Expected tokens of one pass with acceptance `a` and `k` drafts (Leviathan et al. 2023). */
export const expectedTokens = (a, k) => (a >= 1 ? k + 1 : (1 - a ** (k + 1)) / (1 - a));

/** Textbook speedup; `c` is the cost of one drafted token in target passes. */
export const textbook = (a, k, c) => expectedTokens(a, k) / (k * c + 1);

/**
 * Textbook with the share of steps that have a draft, and a batch on a device whose passes carry `room` tokens before
 * arithmetic limits them (a roofline; null: any number).
 */
export function modelled(a, k, c, { coverage = 1, batch = 1, room = null } = {}) {
  const width = (tokens) => (room === null ? 1 : Math.max(1, tokens / room));
  const plain = width(batch);
  const tokens = 1 - coverage + coverage * expectedTokens(a, k);
  return (tokens * plain) / ((1 - coverage) * plain + coverage * (width(batch * (k + 1)) + k * c * plain));
}

/** The k with the highest modelled speedup, 0 when not drafting is best. */
export function bestK(a, c, more = {}) {
  let best = { k: 0, speedup: 1 };
  for (let k = 1; k <= LONGEST; k += 1) {
    const speedup = modelled(a, k, c, more);
    if (speedup > best.speedup + 1e-9) best = { k, speedup };
  }
  return best;
}

/** The first batch, up to `most`, at which speculation no longer gains; null when it always does. */
export function breakEven({ a, k, c, coverage, room }, most = 4096) {
  for (let batch = 1; batch <= most; batch += 1) if (modelled(a, k, c, { coverage, batch, room }) <= 1) return batch;
  return null;
}

/**
 * Accepting and refusing with two distributions over the same words: for each word the chance of acceptance, what is
 * accepted through it, and the residual; `rate` is the chance that a draft is accepted.
 */
export function rejection(p, q) {
  const accept = p.map((share, i) => (q[i] > 0 ? Math.min(1, share / q[i]) : 1));
  const kept = p.map((share, i) => Math.min(share, q[i]));
  const rate = kept.reduce((sum, share) => sum + share, 0);
  const rest = p.map((share, i) => Math.max(0, share - q[i]));
  const whole = rest.reduce((sum, share) => sum + share, 0);
  const residual = rest.map((share) => (whole > 0 ? share / whole : 0));
  return { accept, kept, rate, residual, result: kept.map((share, i) => share + (1 - rate) * residual[i]) };
}

/** `n` tokens drawn by the accept-or-refuse rule: how often each word came, and how many drafts were accepted. */
export function draws(p, q, n, random) {
  const { accept, residual } = rejection(p, q);
  const counts = p.map(() => 0);
  let accepted = 0;
  for (let i = 0; i < n; i += 1) {
    const draft = pick(q, random());
    const taken = random() < accept[draft];
    accepted += taken ? 1 : 0;
    counts[taken ? draft : pick(residual, random())] += 1;
  }
  return { counts, accepted };
}

function pick(shares, at) {
  let sum = 0;
  for (let i = 0; i < shares.length; i += 1) {
    sum += shares[i];
    if (at < sum) return i;
  }
  return shares.length - 1 - [...shares].reverse().findIndex((share) => share > 0);
}

/** A small seeded generator (mulberry32): the same draws each time for the same seed. */
export function generator(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** The runs that teach something: what a page says about when it pays, from measured points alone. */
export function lessons(points) {
  const drafted = points.filter((point) => isNumber(point.a) && isNumber(point.measured));
  const by = (list, value) =>
    list.reduce((best, one) => (best === null || value(one) > value(best) ? one : best), null);
  return {
    best: by(drafted, (point) => point.measured),
    worst: by(drafted, (point) => -point.measured),
    undrafted: points.find((point) => !isNumber(point.a) && isNumber(point.measured)) ?? null,
    short: by(
      drafted.filter((point) => isNumber(point.e2e)),
      (point) => point.measured / point.e2e,
    ),
    cost: by(
      drafted.filter((point) => isNumber(point.c) && isNumber(point.k)),
      (point) => point.coverage ?? 0,
    ),
  };
}

/** The draft length of most drafting runs, and the median cost of a draft among those; null where there is none. */
export function usual(points) {
  const drafted = points.filter((point) => isNumber(point.a) && isNumber(point.k));
  const times = (k) => drafted.filter((point) => point.k === k).length;
  const k = drafted.reduce((best, point) => (best === null || times(point.k) > times(best) ? point.k : best), null);
  const costs = drafted.filter((point) => point.k === k && isNumber(point.c)).map((point) => point.c);
  return { k, c: costs.length > 0 ? costs.sort((a, b) => a - b)[costs.length >> 1] : null };
}

/** Values for a sentence as text: names ending in _share are shares, in _x ratios, in _s seconds. */
export function shown(values, lang) {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [
      name,
      isNumber(value) ? number(name, value, lang) : plain(value, lang),
    ]),
  );
}

function number(name, value, lang) {
  if (name.endsWith("_share")) return percent(value, lang);
  if (name.endsWith("_x")) return ratio(value, lang);
  if (name.endsWith("_s")) return duration(value, lang);
  return Number.isInteger(value) ? count(value, lang) : figure(value, lang);
}

const plain = (value, lang) =>
  value && typeof value === "object" ? (value[lang] ?? value.en ?? "") : String(value ?? "");
