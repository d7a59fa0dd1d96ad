/**
 * The Runs tab: a list that the server keeps, and what can be done with each run. Everything that a run says of itself
 * (a visitor's prompt, an imported file's title) is put in as text, never as markup.
 */
import { fill } from "../engines.mjs";
import { PAGE_SIZE, emptiness, link, place, report, row, whose } from "../runs.mjs";
import { drawComparison } from "./compare.mjs";
import { asking, change, copyText, setShared } from "./share.mjs";

const TYPING = 250; // ms without a key before a search is sent
const AGAIN = 3000; // ms between two looks at a list in which something runs
const SURE = 6000; // ms in which a second press deletes

export async function mount({ element, trigger, root }) {
  const part = element.querySelector('[data-part="runs"]');
  if (!part) return;
  const words = await loadWords(root);
  label(part, words);
  const find = (role) => part.querySelector(`[data-role="${role}"]`);
  const state = { kind: "run", offset: 0, query: "", runs: [], picked: new Map(), sure: new Set(), asked: 0 };

  async function load() {
    const mine = ++state.asked;
    const asked = new URLSearchParams({ offset: state.offset, limit: PAGE_SIZE });
    if (state.query) asked.set("q", state.query);
    if (state.kind !== "run") asked.set("kind", state.kind);
    let answer = null;
    try {
      const reply = await fetch(new URL(`runs?${asked}`, root), { cache: "no-store", headers: asking() });
      answer = reply.ok ? await reply.json() : null;
    } catch {
      answer = null;
    }
    if (mine !== state.asked) return; // a later question is under way
    if (answer === null) return void say("trouble", words.unreachable);
    state.runs = answer.runs;
    draw(answer);
    if (answer.runs.some((run) => run.running)) setTimeout(() => visible() && load(), AGAIN);
  }

  function draw(answer) {
    say("trouble", answer.trouble ? fill(words.runs_trouble, { reason: answer.trouble }) : "");
    const held = part.contains(document.activeElement) ? document.activeElement : null;
    const [id, what] = [held?.closest("[data-run]")?.dataset.run, held?.dataset.do];
    find("rows").replaceChildren(...answer.runs.map((run) => drawRow(run, answer)));
    if (id && what) control(id, what)?.focus();
    const none = answer.runs.length === 0 && !answer.trouble;
    say("empty", none ? emptiness(state.query, words, state.kind) : "");
    find("kinds").hidden = !answer.results;
    part.querySelector(".sd-runs-table").hidden = answer.runs.length === 0;
    part.querySelector(".sd-runs-table").dataset.kind = state.kind;
    find("whose").textContent = whose(answer, words);
    const at = place(state.offset, answer.runs.length, answer.total, words);
    find("place").textContent = at.text;
    for (const name of ["newer", "older"]) {
      const button = part.querySelector(`[data-do="${name}"]`);
      button.disabled = !at[name];
      button.hidden = !at.newer && !at.older;
    }
    drawPicked();
  }

  function drawRow(run, answer) {
    const item = find("row").content.cloneNode(true).firstElementChild;
    label(item, words);
    item.dataset.run = run.id;
    const said = row(run, words);
    const other = report(run);
    const field = (name) => item.querySelector(`[data-field="${name}"]`);
    for (const name of ["title", "about", "how", "mode", "speedup", "verdict"])
      field(name).textContent = said[name] ?? "";
    field("speedup").dataset.value = said.value ?? "";
    field("speedup").dataset.slower = String(said.slower ?? null);
    if (said.forShow && said.value) {
      field("speedup").title = words.run_for_show;
      field("speedup").dataset.forShow = "true";
    }
    field("verdict").dataset.verdict = run.verdict ?? "";
    field("date").textContent = said.date.text;
    field("date").dateTime = said.date.iso;
    field("marks").replaceChildren(
      ...said.marks.map(([kind, text]) =>
        Object.assign(document.createElement("span"), { className: "sd-mark-word", textContent: text, title: kind }),
      ),
    );
    const act = (name) => item.querySelector(`[data-do="${name}"]`);
    act("pick").checked = state.picked.has(run.id);
    act("download").href = new URL(other?.path ?? `runs/${encodeURIComponent(run.id)}/record`, root).href;
    if (other) {
      act("download").textContent = "HTML";
      for (const name of ["share", "copy", "delete", "pick"]) act(name).hidden = true;
      return item;
    }
    act("share").hidden = answer.together;
    act("delete").hidden = run.running;
    drawDelete(act("delete"), run.id);
    drawShared(act("share"), act("copy"), run, answer.together);
    return item;
  }

  function control(id, what) {
    return part.querySelector(`[data-run="${CSS.escape(id)}"] [data-do="${what}"]`);
  }

  function drawDelete(button, id) {
    if (!button) return;
    const sure = state.sure.has(id);
    button.dataset.sure = String(sure);
    button.textContent = words[sure ? "run_delete_sure" : "run_delete"];
  }

  function drawShared(button, copy, run, together) {
    button.setAttribute("aria-pressed", String(run.shared));
    button.textContent = words[run.shared ? "run_unshare" : "run_share"];
    copy.hidden = !run.shared && !together; // a private run's link opens for nobody else
  }

  const does = {
    open(run) {
      const other = report(run);
      if (other) return void document.getElementById(`sd-tab-${other.tab}-button`)?.click();
      trigger("open", { run: run.id });
      document.getElementById("sd-tab-race-button")?.click();
    },
    pick(run, box) {
      if (box.checked) state.picked.set(run.id, run);
      else state.picked.delete(run.id);
      // A third choice takes the place of the oldest.
      while (state.picked.size > 2) {
        const [oldest] = state.picked.keys();
        state.picked.delete(oldest);
        const other = part.querySelector(`[data-run="${CSS.escape(oldest)}"] [data-do="pick"]`);
        if (other) other.checked = false;
      }
      drawPicked();
    },
    async share(run, button) {
      const { ok, answer, error } = await setShared(root, run.id, !run.shared);
      if (!ok) return failed(error);
      run.shared = answer.shared;
      const copy = button.parentElement.querySelector('[data-do="copy"]');
      drawShared(button, copy, run, false);
      if (run.shared) does.copy(run, copy);
    },
    async copy(run, button) {
      await copyText(link(root, run.id));
      button.textContent = words.run_copied;
      setTimeout(() => (button.textContent = words.run_copy), 1500);
    },
    async delete(run, button) {
      // Kept here, not on the button: the list is drawn anew while something runs.
      if (!state.sure.has(run.id)) {
        state.sure.add(run.id);
        drawDelete(button, run.id);
        setTimeout(() => {
          state.sure.delete(run.id);
          drawDelete(control(run.id, "delete"), run.id);
        }, SURE);
        return;
      }
      const { ok, error } = await change(root, `runs/${encodeURIComponent(run.id)}`, { method: "DELETE" });
      if (!ok) return failed(error);
      state.picked.delete(run.id);
      if (state.runs.length === 1 && state.offset > 0) state.offset = Math.max(0, state.offset - PAGE_SIZE);
      await load();
    },
  };

  part.addEventListener("click", ({ target }) => {
    const pressed = target.closest?.("[data-do]");
    const what = pressed?.dataset.do;
    if (what === "newer" || what === "older") {
      state.offset = Math.max(0, state.offset + (what === "older" ? PAGE_SIZE : -PAGE_SIZE));
      void load();
    } else if (what === "kind") {
      state.kind = pressed.dataset.kind;
      state.offset = 0;
      for (const button of find("kinds").children) button.setAttribute("aria-pressed", String(button === pressed));
      void load();
    } else if (what === "compare") void compare();
    else if (what === "close") find("compare").hidden = true;
    else if (does[what]) {
      const run = state.runs.find((one) => one.id === pressed.closest("[data-run]")?.dataset.run);
      if (run) void does[what](run, pressed);
    }
  });

  let typing = 0;
  find("search").addEventListener("input", ({ target }) => {
    clearTimeout(typing);
    typing = setTimeout(() => {
      state.query = target.value.trim();
      state.offset = 0;
      void load();
    }, TYPING);
  });

  find("file").addEventListener("change", async ({ target }) => {
    const [file] = target.files;
    target.value = "";
    if (!file) return;
    say("said", "");
    const headers = { "content-type": "application/json" };
    const { ok, answer, error } = await change(root, "runs", { method: "POST", body: file, headers });
    say("said", fill(ok ? words.import_done : words.import_failed, { title: answer.title, reason: error }));
    find("said").dataset.kind = ok ? "done" : "error";
    state.offset = 0;
    if (ok) await load();
  });

  async function compare() {
    const [a, b] = state.picked.keys();
    const box = find("compare");
    const asked = new URLSearchParams({ a, b });
    try {
      const reply = await fetch(new URL(`runs/compare?${asked}`, root), { cache: "no-store", headers: asking() });
      const answer = await reply.json();
      if (!reply.ok) return failed(answer.error ?? answer.detail);
      drawComparison(box, answer, words);
      box.hidden = false;
      box.focus();
      box.scrollIntoView({ block: "start" });
    } catch {
      failed(words.unreachable);
    }
  }

  function drawPicked() {
    const two = state.picked.size === 2;
    part.querySelector('[data-do="compare"]').disabled = !two;
    find("compare-hint").hidden = two;
  }

  function failed(reason) {
    say("said", fill(words.request_failed, { reason }));
    find("said").dataset.kind = "error";
  }

  function say(role, text) {
    const node = find(role);
    node.hidden = !text;
    if (node.textContent !== text) node.textContent = text;
  }

  const visible = () => part.isConnected && part.offsetParent !== null;
  // The tab is drawn once and then hidden and shown: each look at it asks anew.
  new IntersectionObserver(([seen]) => seen.isIntersecting && void load()).observe(part.querySelector(".sd-runs-bar"));
}

function label(part, words) {
  for (const node of part.querySelectorAll("[data-say]")) node.textContent = words[node.dataset.say] ?? "";
  for (const node of part.querySelectorAll("[data-say-label]"))
    node.setAttribute("aria-label", words[node.dataset.sayLabel] ?? "");
  for (const node of part.querySelectorAll("[data-say-hint]")) node.placeholder = words[node.dataset.sayHint] ?? "";
}

async function loadWords(root) {
  const lang = navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
  const get = async (name) => (await fetch(new URL(`assets/i18n/${name}.json`, root))).json();
  return { ...(await get(lang)), ...(await get(`runs.${lang}`)), lang };
}
