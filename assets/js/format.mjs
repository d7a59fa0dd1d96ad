/**
 * Numbers to text, the same for both sides and both directions: a loss is said as plainly as a win. What does not apply
 * is "–", never 0. Pure. Times come in seconds, rates in tokens/s, shares from 0 to 1.
 */

export const ABSENT = "–";
const NARROW = "\u202f"; // narrow no-break space between number and unit

const locale = (lang) => (String(lang).startsWith("zh") ? "zh-CN" : "en-US");
const formats = new Map();

function decimal(value, digits, lang) {
  const key = `${lang} ${digits}`;
  if (!formats.has(key))
    formats.set(
      key,
      new Intl.NumberFormat(locale(lang), { minimumFractionDigits: digits, maximumFractionDigits: digits }),
    );
  return formats.get(key).format(value);
}

export const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

/** 217 → "217", 12345 → "12,345" */
export const count = (n, lang = "en") => (isNumber(n) ? decimal(n, 0, lang) : ABSENT);

/** Three figures: 9.42, 24.1, 217. */
export function figure(x, lang = "en") {
  if (!isNumber(x)) return ABSENT;
  const size = Math.abs(x);
  return decimal(x, size < 9.995 ? 2 : size < 99.95 ? 1 : 0, lang);
}

/** Tokens per second, one digit after the point under 100. */
export const rate = (x, lang = "en") => (isNumber(x) ? decimal(x, x < 99.95 ? 1 : 0, lang) : ABSENT);

/** Seconds: "420 ms", "3.24 s", "12.4 s", "2 min 5 s". */
export function duration(s, lang = "en") {
  if (!isNumber(s)) return ABSENT;
  const chinese = String(lang).startsWith("zh");
  const unit = chinese ? { ms: "毫秒", s: "秒", min: "分" } : { ms: "ms", s: "s", min: "min" };
  const size = Math.abs(s);
  if (size < 0.00995) return `${decimal(s * 1000, 2, lang)}${NARROW}${unit.ms}`;
  if (size < 0.0995) return `${decimal(s * 1000, 1, lang)}${NARROW}${unit.ms}`;
  if (size < 0.9995) return `${decimal(s * 1000, 0, lang)}${NARROW}${unit.ms}`;
  if (size < 9.995) return `${decimal(s, 2, lang)}${NARROW}${unit.s}`;
  if (size < 99.95) return `${decimal(s, 1, lang)}${NARROW}${unit.s}`;
  const whole = Math.round(s);
  return `${Math.floor(whole / 60)}${NARROW}${unit.min} ${whole % 60}${NARROW}${unit.s}`;
}

/** 0.8055 → "80.6%"; all or nothing only when it is so. */
export function percent(x, lang = "en") {
  if (!isNumber(x)) return ABSENT;
  let value = x * 100;
  if (x < 1) value = Math.min(value, 99.9);
  if (x > 0) value = Math.max(value, 0.1);
  return `${decimal(value, x === 0 || x === 1 ? 0 : 1, lang)}%`;
}

/** 2.414 → "2.41×"; 0.83 → "0.83×" */
export const ratio = (x, lang = "en") => (isNumber(x) ? `${decimal(x, Math.abs(x) < 9.995 ? 2 : 1, lang)}×` : ABSENT);

/** Nats, three digits after the point. */
export const nats = (x, lang = "en") => (isNumber(x) ? decimal(x, Math.abs(x) < 0.01 ? 5 : 3, lang) : ABSENT);

/** "faster", "slower" or "equal": a word for a ratio as it is shown, so that 1.00× never reads as a win. */
export function direction(x) {
  if (!isNumber(x)) return null;
  const shown = Number(ratio(x).replace(/[×,]/g, ""));
  return shown > 1 ? "faster" : shown < 1 ? "slower" : "equal";
}

const KINDS = {
  ttft_s: duration,
  tpot_s: duration,
  e2el_s: duration,
  longest_stall_s: duration,
  chunk_gap_s: duration,
  live_tokens_per_s: rate,
  decode_tokens_per_s: rate,
  tokens_per_s: rate,
  output_tokens: count,
  prompt_tokens: count,
  cached_tokens: count,
  steps: count,
  drafting_steps: count,
  tokens_per_step: figure,
  "acceptance.rate": percent,
  "acceptance.mean_length": figure,
  "acceptance.drafted": count,
  "acceptance.accepted": count,
  "acceptance.drafting_steps": count,
  "speedup.decode": ratio,
  "speedup.e2e": ratio,
  "speedup.ttft": ratio,
};

/** The value of a contract name, for example "acceptance.rate", in an object; null if absent. */
export function lookup(values, name) {
  const value = name.split(".").reduce((at, key) => at?.[key], values);
  return isNumber(value) ? value : null;
}

/**
 * One shown number: its text, and the raw value for data-value ("" if absent).
 * @returns {{text: string, value: string}}
 */
export function show(name, value, { lang = "en" } = {}) {
  if (!isNumber(value)) return { text: ABSENT, value: "" };
  return { text: (KINDS[name] ?? figure)(value, lang), value: String(value) };
}

/** A title may hold both languages as "English | 中文": the visitor's own. */
export function ownTitle(title, lang) {
  const [english, ...rest] = String(title ?? "").split(" | ");
  return lang.startsWith("zh") && rest.length > 0 ? rest.join(" | ") : english;
}

const RTL = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;
const LETTER = /\p{L}/u;

/** Direction of a block of text by its first letter, as the Unicode rule P2 says; null while it has none. */
export function direct(text) {
  for (const c of text) if (LETTER.test(c)) return RTL.test(c) ? "rtl" : "ltr";
  return null;
}

const NAMES = { "\n": "⏎", "\t": "⇥", " ": "␣", "": "∅" };

/** No glyph of their own: control and format characters, half ones, and spaces and line ends other than the usual. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Z}]/u;

/** A token's text made visible in a sentence: line ends, tabs, lone spaces and control characters get a sign. */
export function visible(text) {
  if (text === "") return NAMES[text];
  const blank = /^\s+$/u.test(text); // two spaces look like one, or like none
  return [...text].map((c) => (c === " " && !blank ? c : sign(c))).join("");
}

function sign(c) {
  if (Object.hasOwn(NAMES, c)) return NAMES[c];
  const code = c.codePointAt(0);
  if (code < 32) return String.fromCharCode(0x2400 + code);
  return UNSEEN.test(c) ? `U+${code.toString(16).toUpperCase().padStart(4, "0")}` : c;
}
