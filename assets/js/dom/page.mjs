/** One race view: the run it shows, the loop that draws it, and what the controls may ask. ../pane.mjs tells the form. */
import { apply, createPlayer } from "../player.mjs";
import { SIDES, newView } from "../frame.mjs";
import { duration } from "../format.mjs";
import { createPacer } from "../pacer.mjs";
import { words } from "../words.mjs";
import { createBoard, put, sentence } from "./board.mjs";
import { createControls, savedDisplay } from "./controls.mjs";
import { createPlain } from "./lines.mjs";
import { createOutput } from "./output.mjs";
import { createPlots } from "./plots.mjs";
import { createProse } from "./prose.mjs";
import { openStream } from "./stream.mjs";

const NUMBERS_EVERY = 0.1; // s; 10 Hz is as fast as numbers can be read
const PLOTS_EVERY = 0.2;
const PROSE_EVERY = 0.1;
const SAY_EVERY = 4; // a screen reader hears whole sentences, not tokens
const LATE = 1; // a run that ends within this time of our asking was over already
const LOOP_PAUSE = 3;

const seconds = () => performance.now() / 1000;
const calm = () => window.matchMedia("(prefers-reduced-motion: reduce)").matches;

/** The race view on one element. @param {HTMLElement} root */
export function createPage(root, fire = () => {}) {
  const board = createBoard(root);
  const plots = createPlots(root);
  const panes = Object.fromEntries(
    SIDES.map((side) => {
      const within = root.querySelector(`[data-side="${side}"]`);
      const box = within.querySelector('[data-role="output"]');
      const find = (role) => within.querySelector(`[data-role="${role}"]`);
      const follow = within.querySelector('[data-action="follow"]');
      const parts = {
        box,
        lag: find("lag"),
        reason: createPlain(find("reasoning")),
        reasoningBox: find("reasoning-box"),
      };
      return [
        side,
        {
          ...parts,
          output: createOutput(box, (following) => {
            follow.hidden = following;
          }),
          prose: createProse(box, (...a) => say(...a)),
          pacer: createPacer(),
          drawnAt: 0,
        },
      ];
    }),
  );
  let say = words("en");
  let lang = "en";
  let display = savedDisplay();
  let value = {};
  let view = newView();
  let player = createPlayer();
  let close = () => {};
  let asked = 0; // when the run was asked for
  let totals = { standard: 0, speculative: 0 };
  let scheduled = false;
  let dirty = true;
  let plotsDirty = true;
  let jumped = false;
  let shownBefore = false;
  const last = { numbers: 0, plots: 0, said: 0, sentence: "", resting: false };

  const controls = createControls(root, {
    say: (...a) => say(...a),
    lang: () => lang,
    view: () => view,
    display: () => display,
    spanOf: (side, token) => panes[side].output.spanOf(token),
    follow: (side) => panes[side].output.follow(),
    setDisplay,
    setSpeed(speed) {
      if (player.mode === "live") startReplay();
      player.setSpeed(speed, seconds());
      jumped ||= speed === "instant";
      wake();
    },
    togglePlay() {
      if (player.mode === "live") startReplay();
      else if (player.playing) player.pause(seconds());
      else player.play(seconds());
      wake();
    },
    seek(share) {
      if (player.mode === "live") startReplay();
      player.pause(seconds());
      player.seek(share * player.duration);
      jumped = true;
      wake();
    },
  });

  /** What Python asks for; the same value twice changes nothing. */
  function take(next, sentences = null) {
    const same = next.run === value.run && next.nonce === value.nonce;
    value = next;
    lang = next.lang ?? "en";
    say = words(lang, next.strings, sentences);
    label();
    if (!same) {
      open();
      if (shownBefore && value.run) comeIntoView();
      shownBefore = true;
    }
    dirty = plotsDirty = true;
    wake();
  }

  /** On a phone the texts are far below the Run button that started them. */
  function comeIntoView() {
    const { top } = root.getBoundingClientRect();
    if (top > 0.7 * window.innerHeight) root.scrollIntoView({ behavior: calm() ? "auto" : "smooth", block: "start" });
  }

  function label() {
    for (const node of root.querySelectorAll("[data-word]")) put(node, say(node.dataset.word));
    for (const node of root.querySelectorAll("[data-word-label]"))
      node.setAttribute("aria-label", say(node.dataset.wordLabel));
    const legend = root.querySelector('[data-role="legend"]');
    legend?.replaceChildren(
      ...[
        ["sd-tok sd-draft", "legend_draft"],
        ["sd-tok", "legend_target"],
        ["sd-tok sd-step", "legend_step"],
      ].map(([name, key]) => Object.assign(document.createElement("span"), { className: name, textContent: say(key) })),
    );
    for (const { box } of Object.values(panes)) box.dataset.empty = say("empty");
    board.forget();
  }

  function open() {
    close();
    player = createPlayer();
    totals = { standard: 0, speculative: 0 };
    fresh();
    for (const side of SIDES) clear(side);
    asked = seconds();
    last.sentence = "";
    if (!value.run) {
      close = () => {};
      return;
    }
    const url = value.events_url ?? `runs/${encodeURIComponent(value.run)}/events`;
    close = openStream(url, {
      frame: take_frame,
      lost: () => announce(say("reconnecting")),
      gone: () => announce(say("gone")),
    });
  }

  function take_frame(frame) {
    if (!root.isConnected) return close();
    if (!player.add(frame)) return;
    for (const event of frame.ev ?? [])
      if (event?.k === "tok" && totals[event.s] !== undefined) totals[event.s] += event.n ?? 0;
    // A recording waits for its end, since it is played by its own time and not by the network's.
    if (!value.replay || player.mode !== "live") pump(seconds());
    if (frame.done === true) finished();
    wake();
  }

  function finished() {
    const live = !value.replay && seconds() - asked > LATE;
    if (live) fire("finished", { run: value.run });
    if (calm()) pump(seconds());
    else if (value.replay) {
      player.setSpeed(value.speed ?? 1, seconds());
      startReplay();
    } else if (live && view.head?.mode === "measure") startReplay();
  }

  const together = () => player.mode === "together";

  function startReplay() {
    if (!view.done && !value.replay) return;
    const head = view.head ?? player.head;
    player.replay(seconds(), head?.mode === "measure" ? "together" : "replay");
  }

  function fresh() {
    view = newView(value.run ?? null);
    for (const side of SIDES) panes[side].pacer = createPacer();
    dirty = plotsDirty = true;
  }

  function clear(side) {
    panes[side].output.clear();
    panes[side].prose.clear();
  }

  /** Takes what the player hands on: into the view, and the text to the pacers, stamped with now. */
  function pump(now) {
    const { items, rewound } = player.advance(now);
    if (rewound) fresh();
    const repaint = new Set(rewound ? SIDES : []);
    for (const item of items) {
      apply(view, item);
      const { event } = item;
      if (item.kind !== "event" || !panes[event?.s]) continue;
      if (event.k === "tok" && typeof event.x === "string") panes[event.s].pacer.push(now, event.x);
      else if (event.k === "end") panes[event.s].pacer.finish(now);
      else if (event.k === "prov") repaint.add(event.s);
    }
    if (jumped) for (const side of SIDES) panes[side].pacer.skip();
    jumped = false;
    if (items.length > 0 || rewound) dirty = plotsDirty = true;
    for (const side of repaint) panes[side].output.repaint(view.sides[side]);
  }

  /** One side's text for this frame; says whether all that arrived is on the page. */
  function drawText(name, now, how) {
    const pane = panes[name];
    const side = view.sides[name];
    const shown = pane.pacer.frame(now, how);
    let complete;
    if (display.markdown) {
      complete = now - pane.drawnAt < PROSE_EVERY && !pane.pacer.idle();
      if (!complete) {
        pane.prose.show(side.text, shown, side.end !== null);
        pane.output.touched();
        pane.drawnAt = now;
        complete = true;
      }
    } else complete = pane.output.show(side, shown, pane.pacer.isBoundary);
    pane.reason(side, side.reasoning);
    const thought = side.reasoning !== "";
    if (pane.reasoningBox.hidden === thought) pane.reasoningBox.hidden = !thought;
    return complete && pane.pacer.idle();
  }

  function step(how) {
    const now = seconds();
    pump(now);
    let resting = !player.playing;
    for (const side of SIDES) resting = drawText(side, now, how) && resting;
    for (const side of SIDES) panes[side].output.settle();
    const numbersDue = dirty || player.playing || resting !== last.resting;
    if (numbersDue && (now - last.numbers >= NUMBERS_EVERY || resting)) {
      last.numbers = now;
      dirty = false;
      last.resting = resting;
      const runTime = (side) => (player.mode === "live" ? view.t : player.runTime(side));
      const total = player.mode === "live" && !view.done ? null : Math.max(totals.standard, totals.speculative);
      board.draw(view, { say, lang, total, together: together(), runTime });
      drawControls();
      drawLag(now, resting);
    }
    if (plotsDirty && (now - last.plots >= PLOTS_EVERY || resting)) {
      last.plots = now;
      plotsDirty = false;
      plots.draw(view, say, lang);
    }
    speak(now);
    if (resting && value.loop && player.ended) loop();
    return resting && !dirty && !plotsDirty;
  }

  function drawControls() {
    const { playing, speed, position, duration: whole } = player;
    const replay = player.mode !== "live" || view.done;
    const clock =
      player.mode === "live" ? "" : say("clock", { at: duration(position, lang), duration: duration(whole, lang) });
    controls.draw({ display, replay, playing, speed, position, duration: whole, clock });
  }

  function drawLag(now, resting) {
    for (const { lag, pacer } of Object.values(panes))
      put(
        lag,
        display.smooth
          ? resting
            ? say("lag_rest")
            : say("lag", { ms: Math.round(pacer.lagMs(now) / 10) * 10 })
          : say("lag_raw"),
      );
  }

  function announce(text) {
    put(root.querySelector('[data-role="announce"]'), text);
  }

  function speak(now) {
    if (!view.head || now - last.said < SAY_EVERY || (player.mode !== "live" && !player.ended)) return;
    const text = sentence(view, say, lang);
    if (text === last.sentence) return;
    last.said = now;
    last.sentence = text;
    announce(text);
  }

  let looping = 0;
  function loop() {
    clearTimeout(looping);
    const mine = player;
    looping = setTimeout(() => {
      if (mine !== player || !root.isConnected || !player.ended) return;
      player.play(seconds());
      wake();
    }, LOOP_PAUSE * 1000);
  }

  function setDisplay(next) {
    if (next.markdown !== display.markdown) for (const side of SIDES) clear(side);
    display = next;
    dirty = true;
    wake();
  }

  const how = (hidden) => ({ hidden, reducedMotion: calm(), raw: !display.smooth });

  function wake() {
    if (scheduled || document.hidden) return;
    scheduled = true;
    requestAnimationFrame(() => {
      scheduled = false;
      if (!root.isConnected) return close();
      if (!step(how(false))) wake();
    });
  }

  // Hidden tabs get no animation frames: text and numbers still follow, once a second.
  const timer = setInterval(() => {
    if (!root.isConnected) {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", wake);
      close();
    } else if (document.hidden) step(how(true));
  }, 1000);
  document.addEventListener("visibilitychange", wake);

  label();
  board.draw(view, { say, lang });
  plots.draw(view, say, lang);
  drawControls();
  return { take, view: () => view };
}
