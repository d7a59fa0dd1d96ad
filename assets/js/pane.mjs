/**
 * The race view: frames in, pixels out. This file and dom/*.mjs are the only ones that touch the document.
 *
 * Python side (one gr.HTML, html_template = assets/html/race.html, js_on_load = assets/js/mount.js,
 * css_template empty, apply_default_css=False). The server gives `<root>/assets/js/…` as text/javascript and
 * the frames at `<root>/runs/{id}/events` (docs/frames.md).
 *
 * `props.value`: "" or one small JSON string; a new run is shown when `run` (or `nonce`) changes:
 *   {"run": "ID" | null,          the run to show; null clears the view
 *    "lang": "en" | "zh",         language of the words below
 *    "events_url": "…",           optional, default "runs/ID/events" under the page's root
 *    "replay": true,              optional: play by arrival times instead of at once (for finished, recorded runs)
 *    "speed": 1,                  optional: replay speed 0.25 | 0.5 | 1 | "instant"
 *    "loop": false,               optional: start again 3 s after the end (recorded run on a first visit)
 *    "strings": {…},              optional: overrides of assets/js/words.mjs, same keys
 *    "nonce": n}                  optional: shows the same run anew
 *
 * Hooks in the skeleton (an absent one is left out): data-side, data-role, data-metric (+ raw data-value),
 * data-verdict, data-word (text by key), data-word-label (aria-label by key), data-tip-word (tooltip by key),
 * data-action, data-toggle, data-speed, data-chart.
 *
 * Keys: Ctrl+Enter clicks `#sd-run button, button#sd-run`; Esc clicks `#sd-stop button, button#sd-stop`.
 * Fired to Python with trigger(name): "finished" {run} once after a live run's last frame, if a listener is bound.
 */
import { createPage } from "./dom/page.mjs";
import { pageRoot } from "./dom/stream.mjs";

/** Called by mount.js with what gr.HTML gives to a component's script. */
export function mount({ element, props, watch, trigger }) {
  const root = element.querySelector('[data-role="race"]');
  if (root === null) return;
  const page = createPage(root, (name, data) => trigger?.(name, data));
  let latest = 0;
  const read = async () => {
    latest += 1;
    const mine = latest;
    try {
      const value = JSON.parse(props.value || "{}");
      const sentences = await sentencesIn(value.lang);
      if (mine === latest) page.take(value, sentences); // while the words came, another value may have
    } catch (error) {
      console.error("specdemo: unreadable value", error);
    }
  };
  read();
  watch("value", read);
}

let chinese = null; // asked for once, if the answer is one

/** The server's sentences in a language; null for English, which comes with each frame. */
export async function sentencesIn(lang) {
  if (!String(lang ?? "").startsWith("zh")) return null;
  chinese ??= fetch(new URL("assets/i18n/sentences/zh.json", pageRoot())).then((answer) =>
    answer.ok ? answer.json() : null,
  );
  const found = await chinese.catch(() => null);
  if (found === null) chinese = null; // a lost connection: the next run asks again
  return found;
}
