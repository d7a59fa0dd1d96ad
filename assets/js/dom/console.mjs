/**
 * Header, engine panel and gallery: the parts of the page around the race. One poll serves all of them.
 * Everything that a server or an engine says is put in as text, never as markup.
 */
import { brief, commands, facts, fill, pause, summary } from "../engines.mjs";
import { direction, ratio } from "../format.mjs";
import { spoken } from "../sentences.mjs";
import { mountShare } from "./share.mjs";
import { mountSwitch } from "./switch.mjs";

const parts = { header: mountHeader, engines: mountEngines, recordings: mountRecordings };
const THEME = "specdemo-theme";
const watchers = new Set();
let wordsPromise = null;
let polling = false;

/** Take over one part. `element` is the gr.HTML's own, `trigger` reaches Python, `root` ends with a slash. */
export async function mount({ element, trigger, root }) {
  const part = element.querySelector("[data-part]");
  if (!part) return;
  wordsPromise ??= loadWords(root);
  const words = await wordsPromise;
  for (const node of part.querySelectorAll("[data-say]")) node.textContent = words[node.dataset.say] ?? "";
  for (const node of part.querySelectorAll("[data-say-label]")) {
    node.setAttribute("aria-label", words[node.dataset.sayLabel] ?? "");
    node.title = words[node.dataset.sayLabel] ?? "";
  }
  await parts[part.dataset.part]({ part, trigger, root, words });
}

async function loadWords(root) {
  const lang = navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
  const read = async (path) => (await fetch(new URL(`assets/i18n/${path}.json`, root))).json();
  const [words, table] = await Promise.all([read(lang), lang === "zh" ? read("sentences/zh") : null]);
  const own = (holder, field) => spoken(holder, field, undefined, { table, between: "；" });
  return { ...words, lang, own };
}

function mountHeader({ part, trigger, root, words }) {
  mountShare(root);
  const pill = part.querySelector('[data-role="engines-summary"]');
  let was = "";
  watch(root, (answer) => {
    const said = summary(answer, words);
    pill.dataset.state = said.state;
    // Unchanged text is left alone: a status region is read aloud whenever it is written to.
    put(pill, said.text);
    if (was === "loading" && said.state === "ready") trigger("ready");
    was = said.state;
  });
  part.querySelector('[data-do="language"]').addEventListener("click", (event) => {
    event.preventDefault();
    const address = new URL(window.location.href);
    address.searchParams.set("lang", words.lang === "zh" ? "en" : "zh");
    window.location.assign(address);
  });
  const chosen = recall(THEME);
  if (chosen) document.body.classList.toggle("dark", chosen === "dark");
  part.querySelector('[data-do="theme"]').addEventListener("click", () => {
    keep(THEME, document.body.classList.toggle("dark") ? "dark" : "light");
  });
}

/** A choice kept by this browser; null where storage is forbidden. */
function recall(name) {
  try {
    return window.localStorage.getItem(name);
  } catch {
    return null;
  }
}

function keep(name, value) {
  try {
    window.localStorage.setItem(name, value);
  } catch {
    // A private window may forbid it; the choice then lasts as long as the page.
  }
}

async function mountEngines({ part, trigger, root, words }) {
  const cards = [...part.querySelectorAll("[data-engine]")];
  for (const card of cards) {
    for (const button of card.querySelectorAll("[data-command]")) {
      button.addEventListener("click", () =>
        trigger("command", { side: card.dataset.engine, action: button.dataset.command }),
      );
    }
  }
  const drawSwitch = await mountSwitch({ part, root, words });
  watch(root, (answer) => {
    drawSwitch(answer);
    for (const status of answer?.sides ?? []) {
      const card = cards.find((one) => one.dataset.engine === status.side);
      if (card) drawEngine(card, status, answer.controls && status.managed, words);
    }
  });
}

function drawEngine(card, status, controls, words) {
  const field = (name) => card.querySelector(`[data-field="${name}"]`);
  card.dataset.state = status.state;
  put(field("state"), words[`state_${status.state}`] ?? status.state);
  put(field("stage"), status.state === "ready" ? "" : words.own(status, "stage"));
  put(field("since"), status.seconds >= 1 ? fill(words.field_since, { seconds: Math.floor(status.seconds) }) : "");
  const bar = field("progress");
  bar.hidden = status.state !== "loading" || typeof status.fraction !== "number";
  if (!bar.hidden) bar.value = status.fraction;
  field("error").hidden = !status.error;
  put(field("error"), words.own(status, "error"));
  drawFacts(field("facts"), facts(status, words), words);
  const log = (status.log_tail ?? []).join("\n");
  field("log-box").hidden = !log;
  const pre = field("log");
  const following = pre.scrollHeight - pre.scrollTop - pre.clientHeight < 40;
  if (put(pre, log) && following) pre.scrollTop = pre.scrollHeight;
  field("controls").hidden = !controls;
  const allowed = commands(status.state);
  for (const button of card.querySelectorAll("[data-command]")) button.disabled = !allowed[button.dataset.command];
}

function drawFacts(list, rows, words) {
  const key = JSON.stringify(rows);
  if (list.dataset.key === key) return;
  list.dataset.key = key;
  list.replaceChildren(
    ...rows.map(([name, text, kind]) => {
      const row = document.createElement("div");
      const term = document.createElement("dt");
      const value = document.createElement("dd");
      term.textContent = words[name];
      if (kind === "code") value.append(...code(text, words));
      else value.textContent = text;
      row.append(term, value);
      return row;
    }),
  );
}

/** An address or a command line: long folders are shortened until asked for, and copying always gives the exact text. */
function code(text, words) {
  const shown = document.createElement("code");
  const short = brief(text);
  shown.textContent = short;
  const button = (word, press) => {
    const made = Object.assign(document.createElement("button"), { type: "button", className: "sd-plain" });
    made.textContent = words[word];
    made.addEventListener("click", () => press(made));
    return made;
  };
  if (!text.includes(" ")) return [shown];
  const copy = button("copy", async (made) => {
    await navigator.clipboard?.writeText(text);
    made.textContent = words.copied;
  });
  if (short === text) return [shown, copy];
  const whole = button("command_whole", (made) => {
    const long = shown.textContent !== text;
    shown.textContent = long ? text : short;
    made.textContent = words[long ? "command_brief" : "command_whole"];
  });
  return [shown, whole, copy];
}

async function mountRecordings({ part, trigger, root, words }) {
  const answer = await fetch(new URL("recordings", root));
  const found = answer.ok ? await answer.json() : [];
  const list = part.querySelector('[data-role="cards"]');
  const card = part.querySelector('template[data-role="card"]');
  part.querySelector('[data-role="none"]').hidden = found.length > 0;
  for (const recording of found) {
    const item = card.content.cloneNode(true);
    const button = item.querySelector("[data-open]");
    button.dataset.open = recording.id;
    item.querySelector('[data-field="prompt"]').textContent = recording.prompt ?? "";
    for (const name of ["title", "how"])
      item.querySelector(`[data-field="${name}"]`).textContent = recording[name]?.[words.lang] ?? "";
    const speed = item.querySelector('[data-field="speedup"]');
    if (typeof recording.speedup === "number") {
      speed.textContent = ratio(recording.speedup, words.lang);
      speed.dataset.slower = String(direction(recording.speedup) === "slower");
    }
    button.addEventListener("click", () => {
      trigger("open", { run: recording.id });
      document.querySelector('[data-role="race"]')?.scrollIntoView({ block: "start", behavior: "smooth" });
    });
    list.append(item);
  }
}

function put(node, text) {
  if (node.textContent === text) return false;
  node.textContent = text;
  return true;
}

/** Call `draw` with each answer of the server, null when it is out of reach. */
function watch(root, draw) {
  watchers.add(draw);
  if (!polling) {
    polling = true;
    poll(root);
  }
}

async function poll(root) {
  let answer = null;
  if (!document.hidden) {
    try {
      const reply = await fetch(new URL("engines", root), { cache: "no-store" });
      answer = reply.ok ? await reply.json() : null;
    } catch {
      answer = null;
    }
    for (const draw of watchers) draw(answer);
  }
  setTimeout(poll, document.hidden ? 1000 : pause(answer), root);
}
