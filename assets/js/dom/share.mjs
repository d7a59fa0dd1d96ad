/** Sharing a run: the switch on the server, the link on the clipboard. Used by the status line and the Runs tab. */
import { link } from "../runs.mjs";

const OURS = { "x-specdemo": "1" }; // what changes something asks for it: no other site's script can send it

/** The page's language may be another than the browser's (?lang=, see language.js); the server answers in the page's. */
export const asking = () => ({ "accept-language": navigator.language });

/** Asks the server for a change. @returns {Promise<{ok: boolean, answer: object, error: string}>} */
export async function change(root, path, options) {
  try {
    const reply = await fetch(new URL(path, root), {
      ...options,
      headers: { ...OURS, ...asking(), ...options.headers },
    });
    const text = await reply.text();
    let answer = {};
    try {
      answer = JSON.parse(text || "{}");
    } catch {
      answer = {};
    }
    return { ok: reply.ok, answer, error: reply.ok ? "" : String(answer.error ?? answer.detail ?? reply.status) };
  } catch (error) {
    return { ok: false, answer: {}, error: String(error?.message ?? error) };
  }
}

export function setShared(root, id, shared) {
  const body = JSON.stringify({ shared });
  const headers = { "content-type": "application/json" };
  return change(root, `runs/${encodeURIComponent(id)}/shared`, { method: "PUT", body, headers });
}

export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // plain http away from localhost has no clipboard object, and a frame may be denied it
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

/** Serves every `data-share` button, now and later: the status line is drawn anew by the server, words and all. */
export function mountShare(root) {
  document.addEventListener("click", async ({ target }) => {
    const button = target.closest?.("button[data-share]");
    if (!button) return;
    const id = button.dataset.share;
    const { ok, error } = await setShared(root, id, true);
    if (ok) await copyText(link(root, id));
    button.textContent = ok ? button.dataset.done : error;
    button.disabled = ok;
  });
}
