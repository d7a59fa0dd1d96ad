/** Everything around the text: numbers, lanes, verdict, split, checks, notes. View in, text out; no clock of its own. */
import { SIDES } from "../frame.mjs";
import { count, direction, isNumber, lookup, nats, ownTitle, show, visible } from "../format.mjs";

const SIGNS = {
  live: "≡",
  identical: "✓",
  identical_to_limit: "✓",
  near_tie: "≈",
  different: "≠",
  not_comparable: "–",
  not_tested: "○",
};
const CONTEXT = 120; // characters of common text before the split
const AFTER = 24; // tokens after it

/** Sets text only if it changed: an unchanged node costs no layout. */
export function put(element, text) {
  if (element && element.textContent !== text) element.textContent = text;
}
const hide = (element, hidden) => {
  if (element && element.hidden !== hidden) element.hidden = hidden;
};
const mark = (element, name, value) => {
  if (element && element.dataset[name] !== value) element.dataset[name] = value;
};

/** Where both bars end: the tokens of a finished side, or the limit while none has finished. */
export function finishLine(view, total) {
  const counts = SIDES.map((side) => view.sides[side].count);
  const ended = SIDES.filter((side) => view.sides[side].end?.state === "finished").map(
    (side) => view.sides[side].count,
  );
  const line = total ?? (ended.length > 0 ? Math.max(...ended) : (view.head?.max_tokens ?? 0));
  return Math.max(line, ...counts, 1);
}

/** @param {HTMLElement} root the race view */
export function createBoard(root) {
  const role = (name, within = root) => within.querySelector(`[data-role="${name}"]`);
  const pane = Object.fromEntries(SIDES.map((side) => [side, root.querySelector(`[data-side="${side}"]`)]));
  const lane = Object.fromEntries(SIDES.map((side) => [side, root.querySelector(`[data-lane="${side}"]`)]));
  const numbers = [...root.querySelectorAll("[data-metric]")].map((element) => ({
    element,
    name: element.dataset.metric,
    side: element.closest("[data-side]")?.dataset.side ?? "speculative",
  }));
  let drawn = {}; // JSON of what the lists show now

  function changed(key, value) {
    const text = JSON.stringify(value) ?? "";
    if (drawn[key] === text) return false;
    drawn[key] = text;
    return true;
  }

  function metric({ element, name, side }, view, say, lang, runTime) {
    const { metrics, end, start } = view.sides[side];
    const pair = name.startsWith("speedup.");
    let value = pair ? lookup(view.speedup, name.slice(8)) : lookup(metrics, name);
    let raw = true;
    if (name === "output_tokens" && value === null && view.sides[side].count > 0) value = view.sides[side].count;
    if (name === "e2el_s" && value === null && start !== null && end === null) {
      value = Math.max(0, runTime(side) - start); // running time, not yet the number itself
      raw = false;
    }
    const shown = show(name, value, { lang });
    put(element, shown.text);
    mark(element, "value", raw ? shown.value : "");
    const title = value === null ? reason(pair ? view.speedup : metrics, name, say) : "";
    if (element.title !== title) element.title = title;
  }

  function side(name, view, say) {
    const within = pane[name];
    if (!within) return;
    const { state, end, metrics } = view.sides[name];
    const facts = view.head?.sides?.[name];
    mark(within, "state", state);
    put(
      role("state", within),
      end?.reason
        ? say(`finish_${end.reason}`).startsWith("finish_")
          ? `${say("state_finished")}: ${end.reason}`
          : say(`finish_${end.reason}`)
        : say(`state_${state}`),
    );
    put(
      role("engine", within),
      [facts?.model, facts?.method && `${facts.method}${facts.k ? `, k = ${facts.k}` : ""}`]
        .filter(Boolean)
        .join(" · "),
    );
    const final = metrics.final === true || !isNumber(metrics.live_tokens_per_s);
    const done = end !== null && final;
    hide(within.querySelector('[data-metric="live_tokens_per_s"]'), done);
    hide(within.querySelector('[data-metric="decode_tokens_per_s"]'), !done);
    put(
      role("rate-unit", within),
      say(
        done
          ? "rate_final"
          : state === "running" && !isNumber(metrics.live_tokens_per_s)
            ? "rate_measuring"
            : "per_second",
      ),
    );
    const message = role("message", within);
    put(message, state === "failed" ? say.own(end, "message") : "");
    hide(message, state !== "failed");
  }

  function lanes(view, say, lang, total) {
    const line = finishLine(view, total);
    for (const name of SIDES) {
      const { count: n, end } = view.sides[name];
      const bar = lane[name]?.querySelector("i");
      if (bar) bar.style.transform = `translateX(${(100 * Math.min(1, n / line) - 100).toFixed(2)}%)`;
      mark(lane[name], "ended", end?.state ?? "");
      put(lane[name] && role("lane-count", lane[name]), view.head ? count(n, lang) : "–");
    }
    const [a, b] = SIDES.map((name) => view.sides[name].count);
    const lead =
      a === b
        ? say("level")
        : say("ahead", { side: say(a > b ? "standard" : "speculative"), n: count(Math.abs(a - b), lang) });
    put(role("track-words"), view.head && a + b > 0 && !view.done && view.head.mode === "race" ? lead : "");
  }

  function speedup(view, say) {
    const way = direction(lookup(view.speedup, "decode"));
    const words = way
      ? say(way)
      : say.own(view.speedup, "reasons", "decode") || (view.head && !view.done ? say("speedup_pending") : "");
    put(role("speedup-words"), words);
    const race = [view.head?.badge, view.head?.recorded?.how].includes("race_shared");
    put(role("speedup-basis"), way && race ? say("race_only") : ""); // a race's ratio never stands without this
    const element = role("speedup-words")?.closest(".sd-speedup");
    mark(element, "way", way ?? "");
    if (element) element.title = say.own(view.speedup, "basis");
  }

  function verdict(view, say, lang) {
    const element = role("verdict");
    if (!element) return;
    const v = view.verdict;
    const n = count(v?.compared ?? 0, lang);
    const live = v?.live !== false;
    const equalSoFar = live && isNumber(v?.compared) && v.compared > 0;
    const split = live && isNumber(v?.position);
    const kind = v === null ? "" : live ? (view.head?.greedy === false ? "not_comparable" : "live") : v.class;
    mark(element, "verdict", kind);
    put(role("verdict-sign"), split ? SIGNS.different : (SIGNS[kind] ?? ""));
    const waiting = view.head ? say("verdict_waiting") : "";
    const going =
      view.head?.greedy === false
        ? say("verdict_sampling")
        : split
          ? say("verdict_split", { position: count(v.position + 1, lang) })
          : equalSoFar
            ? say("verdict_live", { n })
            : waiting;
    put(role("verdict-head"), live ? going : say(`verdict_${v.class}`));
    const equal = !live && v.class?.startsWith("identical") && v.level !== "text" ? say("verdict_equal", { n }) : "";
    put(role("verdict-detail"), live ? "" : equal || say.own(v, "reason"));
  }

  function split(view, say, lang) {
    const v = view.verdict;
    const known = v?.live === false && ["near_tie", "different"].includes(v.class) && isNumber(v.position);
    const box = role("split");
    if (!box || !changed("split", known && [v, lang])) return;
    hide(box, !known);
    if (!known) return;
    put(role("split-head"), say("split_head", { position: count(v.position + 1, lang) }));
    const tokens = view.sides.standard.tokens;
    const common = tokens
      .slice(
        0,
        tokens.findIndex((t) => t.first + Math.max(1, t.count) > v.position),
      )
      .map((t) => t.text)
      .join("");
    const body = role("split-body");
    body.replaceChildren(make("p", "sd-split-common", [...common].slice(-CONTEXT).join("")));
    for (const name of SIDES) {
      const candidate = v[`${name}_token`];
      const row = body.appendChild(make("p", "sd-split-row"));
      row.dataset.splitSide = name;
      row.append(make("b", "", say(name)), make("mark", `sd-${name}`, candidate ? visible(candidate.text) : "∅"));
      const rest = view.sides[name].tokens.filter((t) => t.first > v.position).slice(0, AFTER);
      row.append(make("span", "sd-split-rest", rest.map((t) => t.text).join("")));
      if (isNumber(candidate?.logprob)) row.append(make("small", "", `${nats(candidate.logprob, lang)} nats`));
    }
    const gap = isNumber(v.gap_nats)
      ? say("split_gap", { gap: nats(v.gap_nats, lang), tolerance: nats(v.tolerance_nats, lang) })
      : say("split_no_gap");
    body.append(make("p", "sd-sub", gap));
  }

  function lists(view, say) {
    const checks = role("checks");
    if (checks && changed("checks", [view.checks, say("checks_ok")])) {
      const at = (level) => view.checks.filter((c) => c.level === level);
      const level = at("block").length > 0 ? "block" : at("warn").length > 0 ? "warn" : "ok";
      hide(checks, view.checks.length === 0);
      mark(checks, "level", level);
      put(
        role("checks-summary"),
        say(`checks_${level}`, { n: at(level).length, detail: say.own(at("block")[0], "detail") }),
      );
      role("checks-list").replaceChildren(
        ...view.checks.map((c) => {
          const item = make("li", "");
          item.dataset.level = String(c.level);
          item.append(make("b", "", String(c.check)), ` ${say.own(c, "detail")}`);
          return item;
        }),
      );
    }
    const notes = role("notes");
    const remarks = view.verdict?.live === false ? (view.verdict.remarks ?? []) : [];
    if (notes && changed("notes", [view.notes, remarks, say("standard")])) {
      hide(notes, view.notes.length + remarks.length === 0);
      const line = (kind, text) => {
        const item = make("li", "", text);
        item.dataset.kind = String(kind);
        return item;
      };
      notes.replaceChildren(
        ...remarks.map((_, i) => line("remark", say.own(view.verdict, "remarks", i))),
        ...gathered(view.notes).map(({ note, sides }) => {
          const text = say.own(note, "message") || note.kind;
          const who = sides.map((name) => say(name)).join(" + ");
          return line(note.kind, who ? say("note_of", { who, text }) : text);
        }),
      );
    }
  }

  function badge(view, say, lang, together) {
    const head = view.head;
    const kind = head?.badge ?? "";
    const r = head?.recorded;
    const from = r
      ? say("recorded_on", { date: r.date, hardware: say.own(r, "hardware"), how: say(`how_${r.how}`) })
      : "";
    mark(role("badge"), "badge", kind);
    put(role("badge-kind"), head ? say(`badge_${kind}`) : say("idle"));
    put(
      role("badge-from"),
      [from, r?.imported ? say("recorded_imported") : "", together ? say("playing_together") : ""]
        .filter(Boolean)
        .join(" · "),
    );
    const asked = (head?.prompt?.user ?? "").slice(0, 400).replaceAll(/\s+/g, " ");
    put(role("title"), ownTitle(head?.title, lang));
    put(role("prompt"), asked);
    hide(role("asked"), !head);
  }

  /** Draws the view. `total`: tokens of the longer side where they are known already (a replay). `runTime`: seconds of the run now, for a side. */
  function draw(view, { say, lang, total = null, together = false, runTime = () => view.t }) {
    mark(root, "mode", view.head ? (view.done ? "done" : "live") : "idle");
    for (const number of numbers) metric(number, view, say, lang, runTime);
    for (const name of SIDES) side(name, view, say);
    lanes(view, say, lang, total);
    speedup(view, say);
    verdict(view, say, lang);
    split(view, say, lang);
    lists(view, say);
    badge(view, say, lang, together);
    const { acceptance } = view.sides.speculative.metrics;
    put(
      role("acceptance-source"),
      acceptance && isNumber(acceptance.rate) ? say(`source_${acceptance.source}`) : say.own(acceptance, "reason"),
    );
    put(
      role("drafted-words"),
      isNumber(acceptance?.drafted) ? say("of_drafted", { drafted: count(acceptance.drafted, lang) }) : "",
    );
  }

  return { draw, forget: () => (drawn = {}) };
}

/** Notes with the same words for both sides become one. @returns {{note: object, sides: string[]}[]} */
export function gathered(notes) {
  const found = new Map();
  for (const note of notes) {
    const key = `${note.kind} ${note.message}`;
    if (!found.has(key)) found.set(key, { note, sides: [] });
    if (SIDES.includes(note.side)) found.get(key).sides.push(note.side);
  }
  return [...found.values()];
}

/** Why a number is absent, from the object that would hold it. */
function reason(holder, name, say) {
  const last = name.split(".").at(-1);
  if (name === "acceptance.rate") return say.own(holder?.acceptance, "reason");
  return say.own(holder, "reasons", name) || say.own(holder, "reasons", last);
}

function make(tag, name, text) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  if (text !== undefined) element.textContent = text;
  return element;
}

/** One sentence for a screen reader. */
export function sentence(view, say, lang) {
  const failed = SIDES.find((name) => view.sides[name].state === "failed");
  if (failed) return say("say_failed", { side: say(failed), message: say.own(view.sides[failed].end, "message") });
  const [a, b] = SIDES.map((name) => count(view.sides[name].count, lang));
  if (!view.done)
    return view.sides.standard.count + view.sides.speculative.count === 0
      ? say("say_started")
      : say("say_progress", { a, b });
  const x = lookup(view.speedup, "decode");
  const words = x === null ? "" : `${show("speedup.decode", x, { lang }).text} ${say(direction(x))}.`;
  return say("say_done", { words, verdict: say(`verdict_${view.verdict?.class ?? "not_tested"}`) });
}
