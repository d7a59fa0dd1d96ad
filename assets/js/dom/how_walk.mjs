/** The step-by-step part of the How-it-works tab. Tokens are put in as text, never as markup. */
import { firstFrame, firstGuess, frames, gained, seen, view } from "../how_walk.mjs";

const PACE = 1300;
const QUICK = 350; // an ordinary pass shows nothing new
const MARKS = { taken: "✓", refused: "✗", cut: "…", open: "" };

export function mountWalk({ part, find, words, lang, say, machine, data }) {
  const walks = data.walks ?? [];
  find("walk").hidden = walks.length === 0;
  find("walk-none").hidden = walks.length > 0;
  find("walk-none").textContent = words.how_none_walk;
  if (walks.length === 0) return;
  const act = (name) => find("walk").querySelector(`[data-do="${name}"]`);
  const range = find("walk-range");
  let walk = null;
  let at = 0;
  let timer = null;

  const choose = find("walk-run");
  for (const one of walks) choose.append(new Option(one.title[lang] ?? one.title.en, one.run));
  const usual = walks.find((one) => one.run.endsWith("-code")) ?? walks[0];
  choose.value = usual.run;

  function open() {
    walk = walks.find((one) => one.run === choose.value);
    const values = { method: walk.method, k: walk.k, date: walk.date, hardware: machine(walk.machine) };
    find("walk-source").textContent = say("how_source", values);
    find("walk-prompt").textContent = walk.prompt;
    find("walk-known").textContent = walk.known ? words.how_known_yes : words.how_known_no;
    range.max = String(walk.steps.length);
    tape();
    go(firstFrame(walk, firstGuess(walk)));
  }

  /** One bar a pass, as high as the tokens that it wrote; a press jumps there. */
  function tape() {
    const most = Math.max(...walk.steps.map(gained));
    find("walk-tape").replaceChildren(
      ...walk.steps.map((step, i) => {
        const bar = document.createElement("i");
        bar.style.height = `${Math.round((100 * gained(step)) / most)}%`;
        bar.dataset.guessed = String(step.p.length > 0);
        bar.addEventListener("click", () => jump(i));
        return bar;
      }),
    );
  }

  function jump(step) {
    stop();
    go(firstFrame(walk, step));
  }

  function go(to) {
    at = Math.max(0, Math.min(frames(walk).length - 1, to));
    const now = view(walk, at, words);
    find("walk").dataset.phase = now.phase;
    find("walk-before").textContent = now.before;
    find("walk-now").replaceChildren(
      ...now.kept.map((text) => piece("span", text, "taken")),
      ...(now.own === null ? [] : [piece("span", now.own, "own")]),
    );
    const open = now.guesses.map((guess) => chip(guess.text, "open"));
    find("walk-propose").replaceChildren(...open);
    const checked = now.phase === "verify" || now.phase === "keep";
    find("walk-verify").replaceChildren(...(checked ? now.guesses.map((guess) => chip(guess.text, guess.mark)) : []));
    find("walk-keep").replaceChildren(
      ...now.kept.map((text) => chip(text, "taken")),
      ...(now.own === null ? [] : [chip(now.own, "own")]),
    );
    find("walk-say").textContent = now.say;
    find("walk-tally").textContent = now.tally;
    range.value = String(now.step);
    range.setAttribute("aria-valuetext", now.tally);
    for (const [i, bar] of [...find("walk-tape").children].entries()) bar.dataset.now = String(i === now.step - 1);
    act("back").disabled = at === 0;
    act("on").disabled = at === frames(walk).length - 1;
  }

  function chip(text, mark) {
    const node = piece("span", text, mark, seen(text, words));
    node.className = "sd-token";
    node.dataset.unknown = String(text === null);
    if (MARKS[mark]) node.append(sign(MARKS[mark]));
    const spoken = {
      own: words.how_own,
      taken: words.how_mark_taken,
      refused: words.how_mark_refused,
      cut: words.how_mark_cut,
    };
    if (spoken[mark]) node.append(hidden(`, ${spoken[mark]}`));
    return node;
  }

  function stop() {
    clearTimeout(timer);
    timer = null;
    act("play").textContent = words.how_play;
    find("walk-say").setAttribute("aria-live", "polite");
  }

  function play() {
    if (at >= frames(walk).length - 1) go(0);
    act("play").textContent = words.how_pause;
    // Read aloud step by step it would never end; whoever listens goes by hand.
    find("walk-say").setAttribute("aria-live", "off");
    const tick = () => {
      if (!find("walk").isConnected || at >= frames(walk).length - 1) return stop();
      if (find("walk").offsetParent !== null) go(at + 1); // another tab is in front: wait
      timer = setTimeout(tick, find("walk").dataset.phase === "plain" ? QUICK : PACE);
    };
    timer = setTimeout(tick, PACE / 3);
  }

  choose.addEventListener("change", () => {
    stop();
    open();
  });
  range.addEventListener("input", () => jump(range.valueAsNumber - 1));
  act("back").addEventListener("click", () => {
    stop();
    go(at - 1);
  });
  act("on").addEventListener("click", () => {
    stop();
    go(at + 1);
  });
  act("play").addEventListener("click", () => (timer === null ? play() : stop()));
  stop();
  open();
  part.dataset.walk = walk.run;
}

function piece(tag, text, mark, shownAs = text) {
  const node = document.createElement(tag);
  node.dataset.mark = mark;
  node.textContent = shownAs;
  return node;
}

function sign(text) {
  const node = document.createElement("i");
  node.setAttribute("aria-hidden", "true");
  node.textContent = text;
  return node;
}

function hidden(text) {
  const node = document.createElement("span");
  node.className = "sd-aloud";
  node.textContent = text;
  return node;
}
