// Dead letters: the rows that no query could use, with the reason.

import { ServerError, rows } from "./api.js";
import { h, table } from "./dom.js";
import { count, number, value } from "./format.js";
import { change, state } from "./state.js";

const SHOWN = 500;
let known = { stream: undefined, apart: null, found: null, note: null, problem: null };

export function render([stream = ""]) {
  const { found, problem } = known.stream === stream ? known : { found: null, problem: null };
  return [
    h("div", { class: "heading" }, h("h1", { tabindex: -1 }, "Dead letters"),
      h("label", {}, "Stream ", h("select", { "data-do": "lettersOf" },
        h("option", { value: "", selected: stream === "" }, "all"),
        state.streams.filter((one) => one.kind !== "derived").map((one) => h("option", { value: one.name, selected: one.name === stream }, one.name))))),
    h("p", { class: "facts" }, "Rows that no query could use, such as late ones, and why."),
    problem ? h("p", { class: "notice bad" }, problem) : null,
    known.stream === stream && known.note ? h("p", { class: "facts" }, known.note) : null,
    found === null ? null : found.length === 0 ? h("p", {}, "There are none.") : listing(found, stream),
  ];
}

function listing(found, stream) {
  const shown = found.slice(-SHOWN).reverse();
  const names = Object.keys(shown[0]);
  const columns = names.map((name) => ({ title: name, number: shown.every((row) => row[name] === null || typeof row[name] === "number"), code: name === "row" }));
  return [
    h("p", {}, found.length > SHOWN ? `The newest ${number(SHOWN)} of ${count(found.length, "row")}, the newest first.` : `${count(found.length, "row")}, the newest first.`),
    table(stream ? `Dead letters of ${stream}` : "Dead letters of all streams", columns, shown.map((row) => names.map((name) => value(row[name])))),
  ];
}

/** Those of a stream with all its columns; where these are not kept, with the columns that queries read. */
async function lettersOf(stream) {
  if (stream === "") return { found: await rows("/dead-letters"), note: null };
  try {
    return { found: await rows(`/dead-letters/${encodeURIComponent(stream)}`), note: null };
  } catch (error) {
    if (!(error instanceof ServerError) || error.status !== 400) throw error;
    const found = (await rows("/dead-letters")).filter((one) => one.stream === stream);
    return { found, note: `Only the columns that queries read are here: ${error.message}.` };
  }
}

/** Ask for them once they are shown, and again when rows have been set apart since. */
export function shown([stream = ""]) {
  const apart = (state.status?.streams ?? []).map((one) => one.late + one.rejected).join(" ");
  if (state.connection !== "connected" || (known.stream === stream && known.apart === apart)) return;
  known = { ...(known.stream === stream ? known : { found: null, note: null, problem: null }), stream, apart };
  lettersOf(stream)
    .then((found) => Object.assign(known, known.stream === stream ? { ...found, problem: null } : {}))
    .catch((error) => Object.assign(known, { problem: error.message }))
    .then(() => change());
}

export const actions = {
  lettersOf(_, select) {
    location.hash = select.value ? `#/letters/${encodeURIComponent(select.value)}` : "#/letters";
  },
};
