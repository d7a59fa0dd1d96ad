/** Lists, memory and the table of claims on the How-it-works tab: measured where a number stands, else it says so. */
import { size } from "../engines.mjs";
import { breakEven, lessons } from "../how.mjs";

const MOST = 4096;
const DRAFT = { billions: 1.23, bytes: 2 }; // Llama-3.2-1B's model card; FP16

export function mountTexts(page, calculator) {
  const { part, find, say, machine, data, words } = page;
  const hardware = (data.machines ?? []).map(machine).join("; ");
  for (const node of part.querySelectorAll('[data-say="how_points_info"]'))
    node.textContent = say("how_points_info", { hardware });
  find("claims-source").textContent = say("how_claims_source", { hardware, dates: (data.dates ?? []).join(", ") });
  // Without a recording there is no machine to name.
  for (const node of [find("claims-source"), ...part.querySelectorAll('[data-say="how_points_info"]')])
    node.hidden = !hardware;
  const told = lessons(data.points ?? []);
  fillList(find("pays-yes"), [
    [words.how_yes_one, ...cost(told.cost, say), words.how_yes_cited],
    [words.how_yes_repeat, ...run(told.best, "how_yes_run", say)],
  ]);
  fillList(find("pays-no"), [
    [words.how_no_batch, "", words.how_no_batch_cited],
    [words.how_no_load, words.how_no_load_cited],
    [words.how_no_mismatch, ...run(told.worst, "how_yes_run", say), ...run(told.undrafted, "how_no_undrafted", say)],
    [words.how_no_short, ...run(told.short, "how_no_short_run", say)],
  ]);
  const live = find("pays-no").querySelectorAll("p")[1];
  calculator.onChange((now) => {
    const batch = breakEven(now, MOST);
    live.textContent = say(batch === null ? "how_no_batch_never" : "how_no_batch_line", { batch, most: MOST });
  });
  const values = { ...DRAFT, size: Math.round(DRAFT.billions * DRAFT.bytes * 100) / 100 };
  find("memory-model").textContent = say("how_memory_model", values);
  const same = (data.claims ?? []).find(({ row }) => row === 10)?.figures ?? [];
  find("same-here").textContent = same.map((one) => say(one.say, one.values)).join(" ");
  for (const row of data.claims ?? []) find("claims").append(claim(row, page));
  memory(page);
}

const run = (point, key, say) =>
  point ? [say(key, { title: point.title, measured_x: point.measured, e2e_x: point.e2e })] : [];

const cost = (point, say) =>
  point ? [say("how_yes_cost", { title: point.title, width: point.k + 1, cost: 1 + point.k * point.c })] : [];

function fillList(list, entries) {
  list.replaceChildren(
    ...entries.map(([head, ...more]) => {
      const item = document.createElement("li");
      item.append(paragraph(head), ...more.map(paragraph));
      return item;
    }),
  );
}

function paragraph(text) {
  const node = document.createElement("p");
  node.textContent = text;
  return node;
}

function claim({ row, figures }, { words, say, root, lang }) {
  const line = document.createElement("tr");
  line.dataset.claim = String(row);
  line.dataset.measured = String(figures.length > 0);
  const head = document.createElement("th");
  head.scope = "row";
  head.textContent = String(row);
  const claimed = document.createElement("td");
  claimed.textContent = words[`how_claim_${row}`];
  const here = document.createElement("td");
  here.dataset.role = "here";
  for (const figure of figures) {
    const text = paragraph(say(figure.say, figure.values));
    if (figure.run) {
      const link = document.createElement("a");
      link.href = new URL(`?run=${encodeURIComponent(figure.run)}&lang=${lang}`, root).href;
      link.textContent = words.how_open;
      text.append(" ", link);
    }
    here.append(text);
  }
  if (figures.length === 0) here.append(paragraph(words.how_not));
  const more = [words[`how_note_${row}`], figures.length === 0 && words[`how_why_${row}`]];
  here.append(...more.filter(Boolean).map(quiet));
  line.append(head, claimed, here);
  return line;
}

function quiet(text) {
  const node = paragraph(text);
  node.className = "sd-quiet";
  return node;
}

/** What the page's own engines take in memory now, where they tell. */
async function memory({ root, find, part, words, say }) {
  const put = (text) => {
    find("memory-now").textContent = text;
  };
  put(words.how_memory_none);
  try {
    const answer = await (await fetch(new URL("engines", root), { cache: "no-store" })).json();
    const [standard, speculative] = (answer.sides ?? []).map((side) => size(side.memory_bytes));
    if (!standard || !speculative) return;
    put(say("how_memory_now", { standard, speculative }));
    const cell = part.querySelector('[data-claim="9"] [data-role="here"]');
    cell.firstElementChild.textContent = say("how_here_memory", { standard, speculative });
    cell.parentElement.dataset.measured = "true";
  } catch {
    // Without an answer the sentence above stays.
  }
}
