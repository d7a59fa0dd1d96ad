/**
 * What the server says of a run, in the visitor's language. Beside each English sentence of specdemo's own comes its key
 * with its values (`say`, docs/frames.md); the table of a language has the same keys and places. Pure.
 */

/** @typedef {[string, Record<string, string | Told | (string | Told)[]>]} Told */

/** A told sentence in the language of `table`; null when it has no such key. @param {unknown} known */
export function fill(known, table, between = "; ") {
  if (!Array.isArray(known) || typeof known[0] !== "string") return null;
  const [key, values] = known;
  if (!Object.hasOwn(table, key)) return null;
  let whole = true;
  const said = table[key].replace(/\{(\w+)\}/g, (place, name) => {
    const value = values !== null && typeof values === "object" && Object.hasOwn(values, name) ? values[name] : null;
    // A told part is a pair of key and values, a list is one of texts and parts.
    const isPart = Array.isArray(value) && value.length === 2 && typeof value[0] === "string" && isPlain(value[1]);
    const texts = (Array.isArray(value) && !isPart ? value : [value]).map((item) =>
      Array.isArray(item) ? fill(item, table, between) : typeof item === "string" ? item : null,
    );
    whole &&= texts.every((text) => text !== null);
    return whole ? texts.join(between) : place;
  });
  return whole ? said : null;
}

const isPlain = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * The text in `holder[field]` (or `holder[field][name]`) as the visitor reads it: translated if specdemo said it.
 * @param {(text: string) => string} foreign  how words that nobody can translate are shown (an engine's own)
 */
export function spoken(holder, field, name, { table, between, foreign = (text) => text }) {
  const at = (value) => (name === undefined ? value : value?.[name]);
  const text = at(holder?.[field]);
  if (typeof text !== "string" || text === "") return "";
  if (table === null) return text;
  return fill(at(holder.say?.[field]), table, between) ?? foreign(text);
}
