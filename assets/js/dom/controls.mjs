/** Buttons, keys and the scrub bar of the race view. They only tell the page what was asked; they hold no run. */
import { createTip, tokenLines } from "./tip.mjs";

const KEPT = "specdemo.display"; // how this visitor likes the text; never a prompt, never a result

function remember(display) {
  try {
    localStorage.setItem(KEPT, JSON.stringify(display));
  } catch {
    // a private window may refuse; the choice then lasts as long as the page
  }
}

/** @returns {{smooth: boolean, provenance: boolean, markdown: boolean}} */
export function savedDisplay() {
  const display = { smooth: true, provenance: true, markdown: false };
  try {
    const saved = JSON.parse(localStorage.getItem(KEPT) ?? "{}");
    for (const key of Object.keys(display)) if (typeof saved[key] === "boolean") display[key] = saved[key];
  } catch {
    // nothing saved, or nothing to be read
  }
  return display;
}

async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea"); // plain http away from localhost has no clipboard object
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

function download(name, text) {
  const anchor = document.createElement("a");
  anchor.href = URL.createObjectURL(new Blob([text], { type: "text/plain;charset=utf-8" }));
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(anchor.href), 1000);
}

/**
 * @param {HTMLElement} root
 * @param {object} page  what the controls may ask of the page: see pane.mjs
 */
export function createControls(root, page) {
  const tip = createTip(root);
  const sideOf = (element) => element.closest("[data-side]")?.dataset.side;
  let pointed = -1;
  let keyed = false; // the tip was asked for by a key: the pointer has no say until it really moves

  function point(side, index) {
    const span = page.spanOf(side, index);
    if (!span) return;
    pointed = index;
    keyed = true;
    span.scrollIntoView({ block: "nearest" });
    tip.show(span, tokenLines(page.view().sides[side], index, page.say, page.lang()));
  }

  root.addEventListener("click", ({ target }) => {
    const button = target.closest?.("button");
    if (!button || !root.contains(button)) return;
    const { toggle, action, speed } = button.dataset;
    if (toggle) {
      const display = { ...page.display(), [toggle]: button.getAttribute("aria-pressed") !== "true" };
      remember(display);
      page.setDisplay(display);
    } else if (speed) page.setSpeed(speed === "instant" ? speed : Number(speed));
    else if (action === "play") page.togglePlay();
    else if (action === "follow") page.follow(sideOf(button));
    else if (action === "copy") void copied(button);
    else if (action === "download")
      download(`${page.view().run ?? "run"}-${sideOf(button)}.txt`, page.view().sides[sideOf(button)].text);
  });

  async function copied(button) {
    await copy(page.view().sides[sideOf(button)].text);
    button.textContent = page.say("copied");
    setTimeout(() => (button.textContent = page.say("copy")), 1500);
  }

  const scrub = root.querySelector('[data-role="scrub"]');
  scrub?.addEventListener("input", () => page.seek(Number(scrub.value) / Number(scrub.max)));

  // Text that scrolls under a resting pointer "moves" it over other tokens; only its own movement counts.
  root.addEventListener("pointermove", ({ movementX, movementY }) => (keyed &&= movementX === 0 && movementY === 0), {
    passive: true,
  });
  root.addEventListener("pointerover", ({ target }) => {
    if (keyed) return;
    const token = target.closest?.(".sd-tok");
    const help = target.closest?.("[data-tip-word]");
    if (token) {
      const side = sideOf(token);
      tip.show(token, tokenLines(page.view().sides[side], token.tokenIndex, page.say, page.lang()));
    } else if (help) tip.show(help, helpLines(help));
    else tip.hide();
  });
  root.addEventListener("pointerleave", () => keyed || tip.hide());
  root.addEventListener("focusin", ({ target }) => {
    const help = target.closest?.("[data-tip-word]");
    if (help) tip.show(help, helpLines(help));
  });
  root.addEventListener("focusout", () => {
    pointed = -1;
    keyed = false;
    tip.hide();
  });
  root.addEventListener("scroll", () => (keyed ? tip.place() : tip.hide()), { capture: true, passive: true });

  const helpLines = (help) =>
    [page.say(help.dataset.tipWord), help.querySelector("[data-metric]")?.title].filter(Boolean);

  root.addEventListener("keydown", (event) => {
    const output = event.target.closest?.('[data-role="output"]');
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!output || step === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    point(sideOf(output), Math.max(0, pointed + step));
  });

  // Run and Stop are Gradio's buttons; the keys press them, wherever the focus is.
  const press = (id) => {
    const button = document.querySelector(`button#${id}, #${id} button`);
    if (button && !button.disabled) button.click();
    return button !== null;
  };
  function keys(event) {
    if (!root.isConnected) return void document.removeEventListener("keydown", keys);
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && press("sd-run")) event.preventDefault();
    else if (event.key === "Escape" && !event.defaultPrevented) press("sd-stop");
  }
  document.addEventListener("keydown", keys);

  /** Shows the state of the controls. */
  function draw({ display, replay, playing, speed, position, duration, clock }) {
    for (const button of root.querySelectorAll("[data-toggle]"))
      button.setAttribute("aria-pressed", String(display[button.dataset.toggle] === true));
    root.classList.toggle("sd-no-origin", !display.provenance);
    const box = root.querySelector('[data-role="replay"]');
    if (!box) return;
    if (box.hidden === replay) box.hidden = !replay;
    if (!replay) return;
    const play = box.querySelector('[data-action="play"]');
    const word = page.say(playing ? "pause" : "play");
    if (play && play.textContent !== word) play.textContent = word;
    for (const button of box.querySelectorAll("[data-speed]"))
      button.setAttribute("aria-pressed", String(button.dataset.speed === String(speed)));
    if (scrub && scrub !== document.activeElement)
      scrub.value = String(Math.round((duration > 0 ? position / duration : 0) * Number(scrub.max)));
    const out = box.querySelector('[data-role="clock"]');
    if (out && out.textContent !== clock) out.textContent = clock;
  }

  return { draw };
}
