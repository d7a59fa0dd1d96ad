// A virtual display for the pacer: 60 frames a second, no clock; and the measures of docs (method, smoothed rendering).
import { readFileSync } from "node:fs";
import { createPacer } from "../../assets/js/pacer.mjs";

const FPS = 60;
const graphemes = new Intl.Segmenter("und", { granularity: "grapheme" });

/** A recorded stream as [[seconds, text], ...], without chunks that carry no text. */
export function trace(name) {
  const { events } = JSON.parse(readFileSync(new URL(`../traces/${name}.json`, import.meta.url), "utf8"));
  return events.filter(([, , text]) => text !== "").map(([at, , text]) => [at, text]);
}

/** A seeded generator (mulberry32): the same feed in every run. */
export function random(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let x = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x;
    return ((x ^ (x >>> 14)) >>> 0) / 4294967296;
  };
}

/** Bursts of words: `rate` tokens/s in steps of 1..burst tokens, step gaps shaken by `shake` (0.1 = 10 %). */
export function synthetic({ rate, burst = 1, shake = 0.1, seconds = 8, seed = 1, tick = 0, word = () => " word" }) {
  const next = random(seed);
  const feed = [];
  let at = 0.2;
  let held = "";
  let send = tick;
  while (at < seconds) {
    const n = 1 + Math.floor(next() * burst);
    at += (n / rate) * (1 + shake * (2 * next() - 1));
    const text = Array.from({ length: n }, () => word(next)).join("");
    if (tick === 0) feed.push([at, text]);
    else {
      while (at > send) {
        if (held) feed.push([send, held]);
        held = "";
        send += tick;
      }
      held += text;
    }
  }
  return held ? [...feed, [send, held]] : feed;
}

/**
 * Plays a feed; returns every frame [t, units shown], the arrivals and the end.
 * @param {[number, string][]} feed
 */
export function play(feed, { how = () => ({}), tail = 0.6, fps = FPS, phase = 0.004, finish = true } = {}) {
  const pacer = createPacer();
  const end = feed.at(-1)[0];
  const frames = [];
  let i = 0;
  for (let n = 0; n / fps < end + tail; n += 1) {
    const now = n / fps + phase;
    while (i < feed.length && feed[i][0] <= now) pacer.push(...feed[i++]);
    if (finish && i === feed.length) pacer.finish(Math.max(end, now - 1 / fps));
    frames.push([now, pacer.frame(now, how(now)), pacer.lagMs(now)]);
  }
  return { frames, feed, end, pacer, text: feed.map(([, text]) => text).join("") };
}

/** The same feed, shown on arrival. */
export const playRaw = (feed) => play(feed, { how: () => ({ raw: true }) });

/** Gap CV, jitter, longest freeze, added latency, drain and shown duration of a played feed; seconds. */
export function measure({ frames, feed, end, text }) {
  const clusters = [...graphemes.segment(text)].map(({ segment, index }) => index + segment.length);
  const arrival = new Array(clusters.length);
  let offset = 0;
  let c = 0;
  for (const [at, piece] of feed) {
    offset += piece.length;
    while (c < clusters.length && clusters[c] <= offset) arrival[c++] = at;
  }
  const shownAt = [];
  const changes = [];
  let done = 0;
  for (const [now, shown] of frames) {
    const before = done;
    while (done < clusters.length && clusters[done] <= shown) {
      shownAt.push(now);
      done += 1;
    }
    if (done > before) changes.push(now);
  }
  const gaps = changes.slice(1).map((t, i) => t - changes[i]);
  const mean = (list) => list.reduce((sum, x) => sum + x, 0) / list.length;
  const m = mean(gaps);
  const cv = Math.sqrt(mean(gaps.map((g) => (g - m) ** 2))) / m;
  const windows = new Array(Math.max(2, Math.floor((changes.at(-1) - changes[0]) / 0.1))).fill(0);
  for (const t of shownAt) {
    const w = Math.floor((t - changes[0]) / 0.1 + 1e-6);
    if (w < windows.length) windows[w] += 1;
  }
  const steps = windows.slice(1).map((n, i) => Math.abs(n - windows[i]));
  const latency = shownAt.map((t, i) => t - arrival[i]);
  const sorted = [...latency].sort((a, b) => a - b);
  return {
    cv,
    jitter: mean(steps) / mean(windows),
    freeze: Math.max(...gaps),
    mean: mean(latency),
    p95: sorted[Math.ceil(0.95 * sorted.length) - 1],
    max: sorted.at(-1),
    drain: Math.max(0, changes.at(-1) - end),
    duration: changes.at(-1) - changes[0],
    arrived: end - feed[0][0],
    clusters: done,
    total: clusters.length,
  };
}
