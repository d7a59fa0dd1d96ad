/** The How-it-works tab. Its texts and its data are fetched when it is first looked at. */
import { fill } from "../engines.mjs";
import { shown } from "../how.mjs";
import { spoken } from "../sentences.mjs";
import { mountCalculator } from "./how_calc.mjs";
import { mountRule } from "./how_rule.mjs";
import { mountTexts } from "./how_texts.mjs";
import { mountWalk } from "./how_walk.mjs";

/** Take over the tab. `element` is the gr.HTML's own, `root` ends with a slash. */
export async function mount({ element, root }) {
  const part = element.querySelector('[data-part="how"]');
  if (!part || part.dataset.mounted) return;
  part.dataset.mounted = "true";
  await looked(part);
  const lang = navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
  const [words, data, table] = await Promise.all([
    read(new URL(`assets/i18n/how.${lang}.json`, root)),
    read(new URL("how", root)),
    lang === "zh" ? read(new URL("assets/i18n/sentences/zh.json", root)) : null,
  ]);
  for (const node of part.querySelectorAll("[data-say]")) node.textContent = words[node.dataset.say] ?? "";
  for (const node of part.querySelectorAll("[data-say-label]"))
    node.setAttribute("aria-label", words[node.dataset.sayLabel] ?? "");
  const say = (key, values = {}) => fill(words[key] ?? key, shown(values, lang));
  const machine = (holder) => spoken(holder, "hardware", undefined, { table, between: "；" });
  const page = {
    part,
    root,
    words,
    lang,
    say,
    machine,
    data,
    find: (role) => part.querySelector(`[data-role="${role}"]`),
  };
  contents(page);
  mountWalk(page);
  mountRule(page);
  const inputs = mountCalculator(page);
  mountTexts(page, inputs);
  part.dataset.ready = "true";
}

/** Resolves when the tab is on screen for the first time. */
function looked(part) {
  return new Promise((resolve) => {
    const observer = new IntersectionObserver((entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      observer.disconnect();
      resolve();
    });
    observer.observe(part);
  });
}

async function read(address) {
  const answer = await fetch(address);
  return answer.ok ? answer.json() : {};
}

/** Links to the sections; the page's address keeps its own meaning, so they scroll by script. */
function contents({ part, find, words }) {
  const list = find("contents");
  for (const section of part.querySelectorAll("section[data-head]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = words[section.dataset.head];
    button.addEventListener("click", () => {
      const head = section.querySelector("h3");
      head.tabIndex = -1;
      section.scrollIntoView({ block: "start" });
      head.focus({ preventScroll: true });
    });
    list.appendChild(document.createElement("li")).append(button);
  }
}
