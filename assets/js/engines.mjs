/**
 * What the header and the engine panel say, from one answer of `GET <root>/engines`. Pure: no document, no clock.
 *
 * Answer: {"mode": "managed|attached|replay", "controls": bool, "reason": "…", "sides": [status, status]} with the
 * fields of EngineStatus (core/engine.py); fields that the server keeps to itself are absent.
 */

/** Fill `{name}` places of a sentence. */
export function fill(sentence, values) {
  return sentence.replace(/\{(\w+)\}/g, (place, name) => (name in values ? String(values[name]) : place));
}

/** The header's pill: {state, text}. */
export function summary(answer, words) {
  if (!answer) return { state: "lost", text: words.unreachable };
  if (answer.mode === "replay") return { state: "replay", text: words.replay_only };
  const states = answer.sides.map((side) => side.state);
  if (states.every((state) => state === "ready")) return { state: "ready", text: words.all_ready };
  if (states.every((state) => ["ready", "loading", "waiting"].includes(state))) {
    const left = remaining(answer.sides);
    return { state: "loading", text: left === null ? words.loading : fill(words.ready_in, { seconds: left }) };
  }
  return { state: "trouble", text: words.some_not_ready };
}

/** Whole seconds until both are ready; null when an engine's start was never seen before. */
export function remaining(sides) {
  const open = sides.filter((side) => side.state !== "ready");
  if (open.some((side) => side.eta_s === null || side.eta_s === undefined)) return null;
  return Math.max(1, Math.round(Math.max(0, ...open.map((side) => side.eta_s))));
}

/** The facts of one engine as [word key, text, "code"|""] rows; what is unknown has no row. */
export function facts(status, words) {
  // Of an engine that somebody else runs we may not know whether it speculates.
  const none = status.managed ? words.method_none : null;
  const method = status.method ? status.method + (status.k ? `, k = ${status.k}` : "") : none;
  const rows = [
    ["field_model", status.model, ""],
    ["field_method", method, ""],
    ["field_version", status.version, ""],
    ["field_address", status.base_url, "code"],
    ["field_pid", status.pid, ""],
    ["field_memory", size(status.memory_bytes), ""],
    ["field_restarts", status.restarts || null, ""],
    ["field_command", status.command, "code"],
  ];
  return rows
    .filter(([, text]) => text !== null && text !== undefined && text !== "")
    .map(([key, text, kind]) => [key, String(text), kind]);
}

/** A command line to be looked at: of each long folder only its last two names; the folders are this machine's business. */
export function brief(command) {
  return command.replace(/(^|[\s="'])((?:\/[^\s/"']+){3,})/g, (_, before, path) => {
    const names = path.split("/");
    return `${before}…/${names.slice(-2).join("/")}`;
  });
}

/** Which commands make sense in a state. */
export function commands(state) {
  return {
    start: ["stopped", "failed", "dead"].includes(state),
    restart: ["ready", "dead", "failed", "loading"].includes(state),
    stop: ["ready", "loading", "waiting"].includes(state),
  };
}

/** How long to wait before asking again (ms): a settled pair is looked at less often. */
export function pause(answer) {
  if (!answer) return 3000;
  if (answer.mode === "replay") return 60000;
  return answer.sides.every((side) => side.state === "ready" || side.state === "stopped") ? 4000 : 1000;
}

/** Bytes as text; null stays null. */
export function size(bytes) {
  if (!bytes) return null;
  const gib = bytes / 2 ** 30;
  return gib >= 1 ? `${gib.toFixed(1)} GiB` : `${Math.round(bytes / 2 ** 20)} MiB`;
}
