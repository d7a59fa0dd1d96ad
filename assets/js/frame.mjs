/**
 * What the page knows of a run, folded from frames (docs/frames.md). Pure: plain data in, plain data out.
 *
 * The view is one growing object: token lists are appended to, never copied, so folding stays linear. Unknown keys and
 * unknown kinds of events are passed over; a frame whose `seq` was seen changes nothing.
 */

export const SIDES = Object.freeze(["standard", "speculative"]);

/**
 * @typedef {object} Token       one output token, or one chunk whose tokens cannot be told apart
 * @property {string} text       its text; may be empty (half a character)
 * @property {number} first      index of its first token, from 0
 * @property {number} count      tokens it stands for; 0 if unknown
 * @property {string} origin     one letter a token: d accepted draft, t target's own, u unknown
 * @property {number} step       index in `steps`
 * @property {number} at         arrival, seconds since the run's zero
 * @property {?[number|null, [string, number][]]} logprob  its log-probability and the best candidates
 *
 * @typedef {object} Step
 * @property {number} first @property {number} tokens @property {number} at
 * @property {?number} drafted @property {?number} accepted
 *
 * @typedef {object} SideView
 * @property {?number} start     when its request was sent
 * @property {?object} end       its end event
 * @property {string} state      waiting, running, finished, failed, cancelled
 * @property {Token[]} tokens @property {Step[]} steps
 * @property {number} count      tokens so far
 * @property {string} text @property {string} reasoning
 * @property {boolean} exact     the exact assignment has come
 * @property {Record<string, any>} metrics  by contract names; absent or null: does not apply
 *
 * @typedef {object} View
 * @property {?string} run @property {number} seq last frame folded @property {?object} head
 * @property {number} t          seconds since the run's zero when the last frame was made
 * @property {{standard: SideView, speculative: SideView}} sides
 * @property {?object} speedup @property {?object} verdict @property {?object} theory @property {?object} probe
 * @property {object[]} notes @property {object[]} checks @property {boolean} done
 */

const newSide = () => ({
  start: null,
  end: null,
  state: "waiting",
  tokens: [],
  steps: [],
  count: 0,
  text: "",
  reasoning: "",
  exact: false,
  metrics: {},
});

/** @returns {View} a view of nothing yet */
export function newView(run = null) {
  return {
    run,
    seq: -1,
    t: 0,
    head: null,
    sides: { standard: newSide(), speculative: newSide() },
    speedup: null,
    verdict: null,
    theory: null,
    probe: null,
    notes: [],
    checks: [],
    done: false,
  };
}

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const number = (value) => (typeof value === "number" && Number.isFinite(value) ? value : null);
const string = (value) => (typeof value === "string" ? value : "");

/** A frame from its text, or null if it is not one; the stream is our own, but proxies answer too. */
export function parseFrame(text) {
  try {
    const frame = JSON.parse(text);
    return isObject(frame) && Number.isInteger(frame.seq) ? { ...frame, ev: unpack(frame.ev) } : null;
  } catch {
    return null;
  }
}

/** Events as objects: tokens come as `[side, ms since the one before, text or texts, {what is unusual}]`. */
export function unpack(events) {
  let ms = 0;
  return (Array.isArray(events) ? events : []).map((event) => {
    if (!Array.isArray(event)) return event;
    const [side, since, said, more] = event;
    ms += number(since) ?? 0;
    const pieces = Array.isArray(said) ? said.map(string) : null;
    const n = pieces?.length ?? 1;
    const o = side === 0 ? "t".repeat(n) : `${"d".repeat(Math.max(0, n - 1))}${n > 0 ? "t" : ""}`;
    const token = { k: "tok", s: SIDES[side], at: ms / 1000, n, x: pieces?.join("") ?? string(said), o };
    if (pieces !== null) token.p = pieces;
    return isObject(more) ? { ...token, ...more } : token;
  });
}

/** Folds a whole frame, as a live view does on arrival. @returns {View} */
export function fold(view, frame) {
  if (frame.seq <= view.seq) return view;
  view.seq = frame.seq;
  applyRest(view, frame);
  for (const event of Array.isArray(frame.ev) ? frame.ev : []) applyEvent(view, event);
  for (const side of SIDES) applyNumbers(view, side, frame.m?.[side]);
  return view;
}

/** Everything of a frame but its events and its sides' numbers. */
export function applyRest(view, frame) {
  if (isObject(frame.head)) {
    view.head = frame.head;
    if (Array.isArray(frame.head.checks)) view.checks = frame.head.checks;
  }
  if (typeof frame.run === "string") view.run = frame.run;
  view.t = Math.max(view.t, number(frame.t) ?? 0);
  for (const key of ["speedup", "verdict", "theory", "probe"]) if (isObject(frame[key])) view[key] = frame[key];
  for (const key of ["notes", "checks"]) if (Array.isArray(frame[key])) view[key] = frame[key];
  if (frame.done === true) view.done = true;
}

/** Changed numbers of one side; null clears one. */
export function applyNumbers(view, side, numbers) {
  if (!isObject(numbers)) return;
  Object.assign(view.sides[side].metrics, numbers);
  if (typeof numbers.state === "string") view.sides[side].state = numbers.state;
}

/** One event of `ev`. */
export function applyEvent(view, event) {
  const side = isObject(event) ? view.sides[event.s] : undefined;
  if (side === undefined || !SIDES.includes(event.s)) return;
  if (event.k === "start") {
    side.start = number(event.at);
    side.state = "running";
  } else if (event.k === "tok") applyTokens(side, event);
  else if (event.k === "end") {
    side.end = event;
    side.state = string(event.state) || "finished";
  } else if (event.k === "prov") applyProvenance(side, event);
}

function applyTokens(side, event) {
  const count = number(event.n) ?? 0;
  const text = string(event.x);
  const letters = string(event.o).padEnd(count, "u");
  const pieces = Array.isArray(event.p) && event.p.length === count && event.p.join("") === text ? event.p : null;
  const step = side.steps.length;
  const at = number(event.at) ?? side.steps.at(-1)?.at ?? 0;
  const logprobs = Array.isArray(event.lp) ? event.lp : [];
  side.reasoning += string(event.r);
  if (count > 0)
    side.steps.push({ first: side.count, tokens: count, at, drafted: number(event.dr), accepted: number(event.ac) });
  if (pieces !== null)
    for (let i = 0; i < count; i += 1)
      side.tokens.push({
        text: string(pieces[i]),
        first: side.count + i,
        count: 1,
        origin: letters[i],
        step,
        at,
        logprob: logprobs[i] ?? null,
      });
  else if (count > 0 || text !== "")
    side.tokens.push({ text, first: side.count, count, origin: letters, step, at, logprob: logprobs[0] ?? null });
  side.count += count;
  side.text += text;
}

/** The exact assignment, sent once after the end: letters of all tokens, and the steps. */
function applyProvenance(side, event) {
  const letters = string(event.o);
  const at = new Map();
  for (const token of side.tokens) {
    const exact = letters.slice(token.first, token.first + token.count);
    if (exact.length === token.count) token.origin = exact;
    for (let i = 0; i < token.count; i += 1) at.set(token.first + i, token.at);
  }
  if (Array.isArray(event.steps)) {
    let first = 0;
    side.steps = event.steps
      .filter((s) => Array.isArray(s) && Number.isInteger(s[0]))
      .map(([tokens, drafted, accepted]) => {
        const step = { first, tokens, at: at.get(first) ?? side.end?.at ?? 0 };
        first += tokens;
        return { ...step, drafted: number(drafted), accepted: number(accepted) };
      });
    let s = 0;
    for (const token of side.tokens) {
      while (s + 1 < side.steps.length && side.steps[s + 1].first <= token.first) s += 1;
      token.step = s;
    }
  }
  side.exact = true;
}

/** d, t or u if all tokens of a piece agree, else m (mixed). */
export function originOf(token) {
  const [first = "u"] = token.origin;
  return [...token.origin].every((letter) => letter === first) ? first : "m";
}

/** Does a step begin with this token? */
export const beginsStep = (side, token) => side.steps[token.step]?.first === token.first;
