/**
 * The pacer: decides *when* received characters appear, and nothing else. No DOM, no clock: every call brings `now`.
 *
 * Arrivals A(t) and shown R(t) count grapheme clusters. Always A(t - 0.3 s) <= R(t) <= A(t), R never falls, the shown
 * text is a prefix of the received text, and 0.15 s after the end everything is shown. Both sides of a race use the
 * same constants and each has its own pacer, so one side can neither wait for the other nor look faster than its data.
 *
 * Rule: reveal at the arrival rate (forgotten after 1 s), steer the backlog towards a small buffer sized by the usual
 * gap between arrivals, and never let a cluster grow older than its deadline.
 */

/** Everything that steers the rule; seconds. */
export const PACE = Object.freeze({
  deadline: 0.3, // no cluster is held longer
  drain: 0.15, // all is shown so long after the end
  window: 1, // arrivals older than this no longer count for the rate
  firstGap: 0.05, // usual gap before the second arrival
  gapShare: 0.15, // weight of a new gap in the usual gap
  bufferGaps: 2.5, // wanted lag, in usual gaps ...
  bufferMin: 0.05, // ... and its limits
  bufferMax: 0.2,
  horizon: 0.4, // the backlog's error is worked off over this time
  slowest: 0.5, // the rate stays between these shares of the arrival rate
  fastest: 2,
  frame: 1 / 60,
  longestFrame: 0.25, // a longer pause between frames counts as this
});

const HUGE_CLUSTER = 256; // code units; a longer "cluster" is an attack, cut it to keep the cost linear
const segmenter = new Intl.Segmenter("und", { granularity: "grapheme" });
const clamp = (x, low, high) => Math.min(Math.max(x, low), high);

/** Nothing joins a line end, and so rarely an ideograph that Chinese, one character a token, need not wait a token. */
const SETTLED = /^(?:\n|\p{Script=Han}|[，。、；：？！])$/u;

/** Does this cluster plainly expect more (joiner, half a flag, half a character)? Then even the deadline waits. */
export function isOpen(cluster) {
  if (/[\u200d\ud800-\udbff]$/.test(cluster)) return true;
  const flags = cluster.match(/^\p{Regional_Indicator}+$/u);
  return flags !== null && [...cluster].length % 2 === 1;
}

/**
 * @typedef {object} Pacer
 * @property {(now: number, text: string) => void} push  text arrived
 * @property {(now: number) => void} finish              the stream ended
 * @property {(now: number, how?: {hidden?: boolean, reducedMotion?: boolean, raw?: boolean}) => number} frame
 *   one display frame; returns how many UTF-16 units of the text are to be shown
 * @property {() => number} skip                          show all at once (scrubbing); returns the units shown
 * @property {(now: number) => number} lagMs              age of the oldest cluster that is not shown yet, ms
 * @property {(offset: number) => boolean} isBoundary     does a grapheme cluster end at this offset?
 * @property {() => boolean} idle                         nothing left to show
 * @property {number} shown  @property {number} received  UTF-16 units
 */

/** @returns {Pacer} one side's pacer */
export function createPacer(pace = PACE) {
  const bounds = []; // end offsets of the clusters received so far; the last one may still grow while `held` is set
  let rev = 0; // clusters shown; bounds.length is `arr` of the rule
  let queue = []; // [deadline, clusters], oldest first
  let recent = []; // [time, clusters] of the last second
  let received = 0;
  let shown = 0;
  let held = ""; // the last cluster: not shown before the next push, since a joiner or an accent may still follow
  let last = null; // time of the last arrival
  let gap = null;
  let first = null;
  let lastFrame = null;
  let credit = 0;
  let end = null;
  let drainRate = 0;

  function push(now, text) {
    if (text === "" || end !== null) return;
    if (last !== null) {
      const g = Math.max(0, now - last);
      gap = gap === null ? g : gap + pace.gapShare * (Math.min(g, 4 * gap + 0.02) - gap);
    }
    last = now;
    first ??= now;
    // Only the held cluster and the new text are segmented: a cluster's start is always a safe place to start from.
    const start = received - held.length;
    const tail = held + text;
    const before = bounds.length;
    if (held !== "" && rev < before) bounds.pop();
    const old = bounds.length;
    held = "";
    for (const { segment, index } of segmenter.segment(tail)) {
      const stop = start + index + segment.length;
      if (bounds.length === 0 || stop > bounds.at(-1)) bounds.push(stop);
      const open = index + segment.length === tail.length && segment.length < HUGE_CLUSTER;
      if (open && !SETTLED.test(segment)) held = segment;
    }
    received += text.length;
    const count = bounds.length - Math.max(before, old);
    if (count > 0) {
      queue.push([now + pace.deadline, count]);
      recent.push([now, count]);
    }
  }

  function finish(now) {
    if (end !== null) return;
    held = "";
    end = now;
    drainRate = (bounds.length - rev) / pace.drain;
  }

  function rate(now) {
    const backlog = bounds.length - rev;
    if (backlog === 0) return 0;
    const usual = gap ?? pace.firstGap;
    const span = Math.max(usual, Math.min(pace.window, now - first), pace.frame);
    const arrivals = recent.reduce((sum, [, n]) => sum + n, 0) / span;
    const lag = clamp(pace.bufferGaps * usual, pace.bufferMin, pace.bufferMax);
    const steered = arrivals + (backlog - (held === "" ? 0 : 0.5) - arrivals * lag) / pace.horizon; // held: not usable
    let r = clamp(steered, pace.slowest * arrivals, pace.fastest * arrivals);
    let due = 0;
    for (const [deadline, n] of queue) {
      due += n;
      r = Math.max(r, due / Math.max(deadline - now, pace.frame));
    }
    return end === null ? r : Math.max(r, drainRate);
  }

  function consume(count) {
    rev += count;
    let used = 0;
    while (used < queue.length && queue[used][1] <= count) count -= queue[used++][1];
    if (used > 0) queue = queue.slice(used);
    if (count > 0) queue[0] = [queue[0][0], queue[0][1] - count];
  }

  function frame(now, { hidden = false, reducedMotion = false, raw = false } = {}) {
    const dt = clamp(now - (lastFrame ?? now - pace.frame), 0, pace.longestFrame);
    lastFrame = now;
    let old = 0;
    while (old < recent.length && recent[old][0] < now - pace.window) old += 1;
    if (old > 0) recent = recent.slice(old);
    // Nothing followed the held cluster for the whole deadline: show it, unless it is plainly incomplete.
    const patient = held !== "" && (now - last < pace.deadline - pace.frame || isOpen(held));
    const backlog = Math.max(0, bounds.length - rev - (patient ? 1 : 0));
    let count = backlog;
    if (!hidden && !reducedMotion && !raw && !(end !== null && now >= end + pace.drain)) {
      credit += rate(now) * dt;
      count = Math.min(Math.floor(credit + 1e-9), backlog);
    }
    credit = count < backlog ? clamp(credit - count, 0, 0.999) : 0;
    consume(count);
    shown = raw ? received : Math.max(shown, rev === 0 ? 0 : bounds[rev - 1]);
    return shown;
  }

  function skip() {
    consume(bounds.length - rev);
    shown = received;
    credit = 0;
    return shown;
  }

  function lagMs(now) {
    if (shown >= received) return 0;
    const since = queue.length > 0 ? queue[0][0] - pace.deadline : last;
    return Math.max(0, (now - since) * 1000);
  }

  function isBoundary(offset) {
    if (offset === 0 || offset === received) return true;
    let low = 0;
    let high = bounds.length - 1;
    while (low <= high) {
      const middle = (low + high) >> 1;
      if (bounds[middle] === offset) return true;
      if (bounds[middle] < offset) low = middle + 1;
      else high = middle - 1;
    }
    return false;
  }

  return {
    push,
    finish,
    frame,
    skip,
    lagMs,
    isBoundary,
    idle: () => shown >= received && (end === null || rev === bounds.length),
    get shown() {
      return shown;
    },
    get received() {
      return received;
    },
  };
}
