/** The method switch inside the engine panel. What a server says is put in as text, never as markup. */
import { fill } from "../engines.mjs";
import { costs, differs, fitting, label, owned, progress, startSeconds } from "../switch.mjs";

/** Take over the switch of an engine panel. Gives `draw(answer)`, to be called with each answer of `GET <root>/engines`. */
export async function mountSwitch({ part, root, words: common }) {
  const box = part.querySelector('[data-role="switch"]');
  const find = (role) => box.querySelector(`[data-role="${role}"]`);
  const more = await fetch(new URL(`assets/i18n/switch.${common.lang}.json`, root));
  const words = { ...common, ...(await more.json()) };
  for (const node of box.querySelectorAll("[data-say]")) node.textContent = words[node.dataset.say] ?? "";
  const k = find("k");
  const shown = new Map();
  let answer = null;
  let asked = null;
  let was = "idle";
  let touched = false;

  const chosen = () => answer?.switch?.choices.find((choice) => choice.name === picked());
  const picked = () => box.querySelector('input[type="radio"]:checked')?.value ?? "";
  const length = () => fitting(chosen(), k.valueAsNumber, answer.switch.k_limits);

  box.addEventListener("input", (event) => {
    touched = true;
    if (event.target.type === "radio" && chosen()?.k) k.value = String(chosen().k);
    refresh();
  });
  k.addEventListener("change", () => {
    if (length() !== null) k.value = String(length());
    refresh();
  });
  find("apply").addEventListener("click", () => send({ method: picked(), k: length() }));
  find("restore").addEventListener("click", () => send({ method: "restore" }));

  async function send(wanted) {
    const name = wanted.method === "restore" ? answer.switch.former : { ...chosen(), name: wanted.method, k: wanted.k };
    asked = name;
    say(find("problem"), "");
    refresh();
    let refused = words.unreachable;
    try {
      const reply = await fetch(new URL("engines/speculation", root), {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(wanted),
      });
      refused = reply.ok ? "" : owned(await reply.json(), "error", words) || words.unreachable;
    } catch {
      // The sentence above says it.
    }
    // Until an answer shows the new configuration, the old one's state says nothing about it.
    touched = false;
    if (refused) asked = null;
    say(find("problem"), refused);
    refresh();
  }

  function choiceNode(choice) {
    const node = find("choice").content.cloneNode(true).firstElementChild;
    node.querySelector("input").value = choice.name;
    node.querySelector("b").textContent = label({ ...choice, k: null }, words);
    node.querySelector('[data-field="what"]').textContent = words[`switch_${choice.name}_what`] ?? "";
    return node;
  }

  function draw(next) {
    answer = next ?? answer;
    box.hidden = !answer?.switch;
    if (box.hidden) return;
    const { choices, current, k_limits: limits } = answer.switch;
    const names = choices.map((choice) => choice.name).join();
    if (find("choices").dataset.names !== names) {
      find("choices").dataset.names = names;
      shown.clear();
      for (const choice of choices) shown.set(choice.name, choiceNode(choice));
      find("choices").replaceChildren(...shown.values());
    }
    [k.min, k.max] = limits.map(String);
    const speculative = answer.sides.find((side) => side.side === "speculative");
    if (asked && (speculative?.state !== "ready" || !differs(answer, asked.name, asked.k))) asked = null;
    if (!touched && !asked) {
      const radio = shown.get(current.name)?.querySelector("input");
      if (radio) radio.checked = true;
      if (current.k) k.value = String(current.k);
    }
    refresh();
  }

  function refresh() {
    if (!answer?.switch) return;
    const { choices, current, former } = answer.switch;
    const now = progress(answer, words, asked);
    for (const choice of choices) {
      const node = shown.get(choice.name);
      const size = choice.name === picked() ? length() : choice.k;
      node.dataset.running = String(choice.name === current.name && now.state === "idle");
      node.querySelector("input").disabled = Boolean(choice.reason) || now.state === "busy";
      node.dataset.possible = String(!choice.reason);
      say(node.querySelector('[data-field="draft"]'), choice.draft ?? "");
      say(node.querySelector('[data-field="reason"]'), owned(choice, "reason", words));
      list(node.querySelector('[data-field="costs"]'), costs(choice, size, words));
      say(node.querySelector('[data-field="running"]'), node.dataset.running === "true" ? words.switch_running : "");
    }
    const choice = chosen();
    const changed = Boolean(choice) && differs(answer, choice.name, length());
    find("k-box").hidden = length() === null;
    k.disabled = now.state === "busy";
    find("apply").disabled = now.state === "busy" || !changed || Boolean(choice?.reason);
    say(find("apply"), fill(words.switch_apply, { name: choice ? label({ ...choice, k: length() }, words) : "" }));
    const seconds = choice && changed ? startSeconds(choice, length()) : null;
    say(
      find("will"),
      seconds === null ? words.switch_will : fill(words.switch_will_s, { seconds: Math.round(seconds) }),
    );
    say(find("clock"), now.clock);
    if (now.state !== "idle") say(find("progress"), now.state === "busy" ? now.text : "");
    else if (was === "busy") say(find("progress"), done(current));
    box.dataset.state = now.state;
    find("spinner").hidden = now.state !== "busy";
    const failure = { name: label(current, words), error: now.text };
    if (now.state === "failed" && former) say(find("problem"), fill(words.switch_failed, failure));
    else if (was === "failed" && now.state === "busy") say(find("problem"), "");
    find("restore").hidden = !former || now.state === "busy";
    find("restore").dataset.wanted = String(now.state === "failed");
    say(find("restore"), fill(words.switch_restore, { name: label(former, words) }));
    was = now.state;
  }

  const done = (current) => fill(words.switch_done, { name: label(current, words) });
  return draw;
}

function say(node, text) {
  if (text === null || node.textContent === text) return;
  node.textContent = text;
}

function list(node, texts) {
  const key = texts.join("\n");
  if (node.dataset.key === key) return;
  node.dataset.key = key;
  node.replaceChildren(
    ...texts.map((text) => {
      const item = document.createElement("li");
      item.textContent = text;
      return item;
    }),
  );
}
