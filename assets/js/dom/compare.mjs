/** Two runs side by side, drawn as tables. Pure texts come from ../runs.mjs. */
import { heading, numbers } from "../runs.mjs";
import { words as raceWords } from "../words.mjs";

/** Fills `box` with the comparison. @param {HTMLElement} box */
export function drawComparison(box, answer, words) {
  const say = raceWords(words.lang);
  const sides = answer.sides.map((side, i) => ({ ...side, ...answer.runs[i] }));
  const close = element("button", words.compare_close);
  close.type = "button";
  close.dataset.do = "close";
  const head = element("header");
  head.append(element("h3", words.compare_title), close);

  const names = sides.map((side, place) => {
    const cell = document.createElement("th");
    cell.scope = "col";
    for (const [i, line] of heading(side, place + 1, words).entries()) {
      const part = element(i === 0 ? "b" : "small", line);
      part.dir = "auto";
      cell.append(part);
    }
    return cell;
  });
  const verdicts = [
    words.compare_verdict,
    ...sides.map((side) => words[`verdict_${side.verdict}`] ?? side.verdict),
    "",
  ];
  const figures = table(
    [element("th", words.compare_numbers), ...names, element("th", words.compare_ratio)],
    [verdicts, ...numbers(answer, words, say)],
  );
  figures.tBodies[0].rows[0].dataset.row = "verdict";

  const nothing = words.compare_absent;
  const rows = answer.differs.map(({ name, values }) => [name, ...values.map((value) => value ?? nothing)]);
  const differs =
    rows.length > 0
      ? table(
          [element("th", words.compare_setting), ...sides.map((_, i) => element("th", String(i + 1)))],
          rows,
          "code",
        )
      : element("p", words.compare_no_difference);

  box.replaceChildren(
    head,
    element("p", answer.same_prompt ? words.compare_same_prompt : words.compare_other_prompt),
    element("p", words.compare_caution),
    scrolling(figures),
    element("h4", words.compare_differs),
    scrolling(differs),
  );
}

function scrolling(node) {
  const frame = element("div");
  frame.className = "sd-compare-scroll";
  frame.append(node);
  return frame;
}

function table(head, rows, nameTag = "span") {
  const made = document.createElement("table");
  made
    .createTHead()
    .insertRow()
    .append(...head);
  const body = made.createTBody();
  for (const [name, ...cells] of rows) {
    const line = body.insertRow();
    const first = document.createElement("th");
    first.scope = "row";
    first.append(element(nameTag, name));
    line.append(first);
    for (const text of cells) line.insertCell().textContent = text;
  }
  return made;
}

function element(tag, text = "") {
  return Object.assign(document.createElement(tag), { textContent: text });
}
