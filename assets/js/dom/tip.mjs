/** One tooltip for the page: for tokens (pointer, or arrow keys inside the text) and for numbers with a formula. */
import { originOf } from "../frame.mjs";
import { duration, isNumber, nats, percent, visible } from "../format.mjs";

const ORIGINS = { d: "legend_draft", t: "legend_target", u: "legend_unknown", m: "legend_unknown" };

/** What is known of a token, one line each. Positions and steps count from 1. @returns {string[]} */
export function tokenLines(side, index, say, lang) {
  const token = side.tokens[index];
  if (!token) return [];
  const step = side.steps[token.step];
  const position = token.first + 1;
  const name =
    token.count > 1 ? say("tip_tokens", { position, last: token.first + token.count }) : say("tip_token", { position });
  const lines = [`${visible(token.text)}`];
  lines.push(
    [token.count > 0 ? name : "", step ? say("tip_step", { step: token.step + 1 }) : ""].filter(Boolean).join(" · "),
  );
  lines.push(say(ORIGINS[originOf(token)]));
  if (isNumber(step?.drafted) && isNumber(step?.accepted))
    lines.push(say("tip_took", { accepted: step.accepted, drafted: step.drafted }));
  if (side.start !== null) lines.push(say("tip_at", { at: duration(token.at - side.start, lang) }));
  const [logprob, top] = Array.isArray(token.logprob) ? token.logprob : [];
  if (isNumber(logprob))
    lines.push(say("tip_logprob", { value: nats(logprob, lang), percent: percent(Math.exp(logprob), lang) }));
  const others = (Array.isArray(top) ? top : [])
    .filter((t) => Array.isArray(t) && isNumber(t[1]))
    .map(([text, value]) => `${visible(String(text))} ${percent(Math.exp(value), lang)}`);
  if (others.length > 1) lines.push(say("tip_others", { list: others.slice(0, 5).join(", ") }));
  return lines.filter(Boolean);
}

/** @param {HTMLElement} root */
export function createTip(root) {
  const tip = document.createElement("div");
  tip.className = "sd-tip";
  tip.role = "tooltip";
  tip.hidden = true;
  root.append(tip);
  let owner = null;

  function show(anchor, lines) {
    if (lines.length === 0) return hide();
    if (owner !== anchor) owner?.classList.remove("sd-pointed");
    owner = anchor;
    anchor.classList.add("sd-pointed");
    tip.replaceChildren(...lines.map((line) => Object.assign(document.createElement("p"), { textContent: line })));
    tip.hidden = false;
    place();
  }

  /** Beside its owner, wherever that has scrolled to. */
  function place() {
    if (owner === null) return;
    const box = owner.getClientRects()[0] ?? owner.getBoundingClientRect();
    const own = tip.getBoundingClientRect();
    const left = Math.min(Math.max(8, box.left), Math.max(8, window.innerWidth - own.width - 8));
    const above = box.top - own.height - 8;
    tip.style.left = `${left}px`;
    tip.style.top = `${above > 8 ? above : box.bottom + 8}px`;
  }

  function hide() {
    owner?.classList.remove("sd-pointed");
    owner = null;
    tip.hidden = true;
  }

  return { show, hide, place };
}
