/** The accept-or-refuse table of the How-it-works tab: everything in it is computed as one moves the slider. */
import { percent } from "../format.mjs";
import { draws, generator, rejection } from "../how.mjs";

const TARGET = [0.5, 0.3, 0.15, 0.05]; // invented, and called so beside the table
const WRONG = [0.05, 0.1, 0.25, 0.6];
const DRAWS = 10_000;

export function mountRule({ find, words, lang, say }) {
  const mix = find("rule-mix");
  const body = find("rule-table").tBodies[0];
  let drawn = null;
  let seed = 1;

  function draw() {
    const share = mix.valueAsNumber / 100;
    const q = TARGET.map((p, i) => (1 - share) * p + share * WRONG[i]);
    const { accept, rate, residual, result } = rejection(TARGET, q);
    find("rule-mix-out").textContent = percent(share, lang);
    body.replaceChildren(
      ...TARGET.map((p, i) =>
        row([
          [words[`how_word_${i + 1}`]],
          [percent(q[i], lang), q[i], "q"],
          [percent(p, lang), p, "p"],
          [percent(accept[i], lang)],
          [rate > 1 - 1e-12 ? "–" : percent(residual[i], lang)],
          [percent(result[i], lang), result[i], "p"],
          [drawn ? percent(drawn.counts[i] / DRAWS, lang) : "–", drawn ? drawn.counts[i] / DRAWS : 0, "drawn"],
        ]),
      ),
    );
    const says = say("how_try_says", { rate_share: rate });
    if (!drawn) return put(says);
    const gap = Math.max(...TARGET.map((p, i) => Math.abs(p - drawn.counts[i] / DRAWS)));
    put(`${says} ${say("how_try_drew", { count: DRAWS, rate_share: drawn.accepted / DRAWS, gap_share: gap })}`);
  }

  const put = (text) => {
    find("rule-says").textContent = text;
  };
  mix.addEventListener("input", () => {
    drawn = null;
    draw();
  });
  find("rule")
    .querySelector('[data-do="draw"]')
    .addEventListener("click", () => {
      const share = mix.valueAsNumber / 100;
      const q = TARGET.map((p, i) => (1 - share) * p + share * WRONG[i]);
      drawn = draws(TARGET, q, DRAWS, generator(seed));
      seed += 1;
      draw();
    });
  draw();
}

function row(cells) {
  const line = document.createElement("tr");
  for (const [i, [text, share, kind]] of cells.entries()) {
    const cell = document.createElement(i ? "td" : "th");
    if (!i) cell.scope = "row";
    cell.textContent = text;
    if (kind) {
      const bar = document.createElement("i");
      bar.dataset.kind = kind;
      bar.style.width = `${Math.round(share * 100)}%`;
      cell.append(bar);
    }
    line.append(cell);
  }
  return line;
}
