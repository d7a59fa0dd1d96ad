/**
 * The player: decides when the contents of frames are handed on. Pure; every call brings `now` (seconds, any zero).
 *
 * live       handed on as it arrives.
 * replay     by arrival time, at a chosen speed, with pause and scrub. One axis for both sides, from the first start.
 * together   the same, each side from its own start: how two sides that were measured one after the other are shown
 *            at their true speeds. What is said about the pair (verdict, speedup …) is final and shown from the start.
 */
import { SIDES, applyEvent, applyNumbers, applyRest } from "./frame.mjs";

export const SPEEDS = Object.freeze([0.25, 0.5, 1, "instant"]);

/**
 * @typedef {object} Item
 * @property {number} at  media time, seconds
 * @property {"event"|"numbers"|"rest"} kind
 * @property {object} [event] @property {string} [side] @property {object} [numbers] @property {object} [frame]
 */

/** Applies one item to a view. @param {Item} item */
export function apply(view, item) {
  if (item.kind === "event") applyEvent(view, item.event);
  else if (item.kind === "numbers") applyNumbers(view, item.side, item.numbers);
  else {
    applyRest(view, item.frame);
    view.seq = Math.max(view.seq, item.frame.seq);
  }
}

/** The parts of one frame, in the order in which a live view takes them. @returns {Item[]} */
export function parts(frame) {
  const events = Array.isArray(frame.ev) ? frame.ev : [];
  return [
    { at: frame.t ?? 0, kind: "rest", frame },
    ...events.map((event) => ({ at: event?.at ?? frame.t ?? 0, kind: "event", event })),
    ...SIDES.filter((side) => frame.m?.[side]).map((side) => ({
      at: frame.t ?? 0,
      kind: "numbers",
      side,
      numbers: frame.m[side],
    })),
  ];
}

/**
 * Frames of a finished run as one list by media time.
 * @returns {{items: Item[], duration: number, offset: (side: string) => number}} offset: a side's zero in run time
 */
export function schedule(frames, mode) {
  const all = frames.flatMap(parts);
  const starts = {};
  for (const { kind, event } of all) if (kind === "event" && event?.k === "start") starts[event.s] ??= event.at;
  const zero = Math.min(...Object.values(starts), Infinity);
  const first = Number.isFinite(zero) ? zero : 0;
  const offset = (side) => (mode === "together" ? (starts[side] ?? first) : first);
  let duration = 0;
  const latest = {}; // of each side: what was sent later is never due earlier, however times were rounded
  for (const item of all)
    if (item.kind === "event") {
      const side = item.event?.s;
      item.at = Math.max(latest[side] ?? 0, item.at - offset(side));
      latest[side] = item.at;
      duration = Math.max(duration, item.at);
    }
  for (const item of all) {
    if (item.kind === "rest") item.at = mode === "together" || item.frame.head ? 0 : item.at - first;
    if (item.kind === "numbers") item.at -= offset(item.side);
    item.at = Math.min(Math.max(0, item.at), duration);
  }
  // Stable: what is due at the same moment keeps the order in which it was sent.
  return { items: all.sort((a, b) => a.at - b.at), duration, offset };
}

export function createPlayer() {
  const frames = [];
  let seq = -1;
  let fresh = []; // live items that nobody took yet
  let mode = "live";
  let items = [];
  let duration = 0;
  let offset = () => 0;
  let next = 0; // first item that is not handed on
  let position = 0;
  let since = null; // `now` of the last advance while playing
  let speed = 1;
  let rewound = false;

  /** Takes a frame once; says whether it was new. */
  function add(frame) {
    if (frame.seq <= seq) return false;
    seq = frame.seq;
    frames.push(frame);
    if (mode === "live") fresh.push(...parts(frame));
    else ({ items, duration, offset } = schedule(frames, mode));
    return true;
  }

  /** From live to a replay of all that came, from its beginning. */
  function replay(now, how = "replay") {
    mode = how;
    fresh = [];
    ({ items, duration, offset } = schedule(frames, mode));
    position = 0;
    next = 0;
    rewound = true;
    since = now;
  }

  function play(now) {
    if (position >= duration && mode !== "live") seek(0);
    since = now;
  }

  function pause(now) {
    move(now);
    since = null;
  }

  function setSpeed(value, now) {
    move(now);
    speed = value;
  }

  function move(now) {
    if (since === null) return;
    position = speed === "instant" ? duration : Math.min(duration, position + Math.max(0, now - since) * speed);
    since = position >= duration ? null : now;
  }

  /** To a media time; backwards, the view is to be built anew from the items of the next advance. */
  function seek(to) {
    const target = Math.min(Math.max(0, to), duration);
    if (target < position) {
      rewound = true;
      next = 0;
    }
    position = target;
  }

  /** What is due. `rewound`: forget the view first. @returns {{items: Item[], rewound: boolean}} */
  function advance(now) {
    if (mode === "live") {
      const due = fresh;
      fresh = [];
      return { items: due, rewound: false };
    }
    move(now);
    const from = next;
    while (next < items.length && items[next].at <= position) next += 1;
    const was = rewound;
    rewound = false;
    return { items: items.slice(from, next), rewound: was };
  }

  return {
    add,
    replay,
    play,
    pause,
    setSpeed,
    seek,
    advance,
    get mode() {
      return mode;
    },
    get playing() {
      return since !== null;
    },
    get ended() {
      return mode !== "live" && position >= duration;
    },
    get position() {
      return position;
    },
    get duration() {
      return duration;
    },
    get speed() {
      return speed;
    },
    /** Where a replay is, as seconds of the run for this side. */
    runTime: (side) => position + offset(side),
    /** What is known of the run before anything is handed on. */
    get head() {
      return frames.find((frame) => frame.head)?.head ?? null;
    },
  };
}
