// A SELECT that is looked at and not defined: a query of the editor's own, which is dropped when nobody looks any more.

import { carryOut, get, key, remove } from "./api.js";
import { h, table } from "./dom.js";
import { isNumeric, number, quoted, value } from "./format.js";
import { Live } from "./live.js";
import { change } from "./state.js";

const NAMES = "headrace-trials"; // those that this tab has made and not dropped yet
const SHOWN = 200;

let running = null; // {name, live, columns, note}

const names = () => JSON.parse(sessionStorage.getItem(NAMES) ?? "[]");
const keep = (found) => sessionStorage.setItem(NAMES, JSON.stringify(found));

/** Whether a query is one of an editor's. */
export const isTrial = (name) => /^editor_[0-9a-z]{6}$/.test(name);

/**
 * Look at a SELECT, from the rows that its streams keep on, or from now on where one keeps none.
 *
 * `attempt` carries a text out whose first line is not the user's, and gives null where that fails.
 */
export async function look(statement, attempt) {
  await stop();
  const name = `editor_${Math.random().toString(36).slice(2, 8).padEnd(6, "0")}`;
  keep([...names(), name]);
  const made = (clause) => `CREATE QUERY ${quoted(name)} ${clause}AS\n${statement}`;
  let note = "over the rows that its streams keep, and all that come";
  try {
    await carryOut(made("FROM BEGINNING "));
  } catch (error) {
    if (!error.kind) throw error;
    // What is wrong with the clause is no fault of the SELECT; where it is the SELECT's, the second attempt says so.
    note = "over the rows that come from now on, for older ones are not kept (RETAIN keeps them)";
    if (await attempt(made("")) === null) return false;
  }
  const { columns, events } = await get(`/queries/${encodeURIComponent(name)}`);
  running = { name, note, columns, live: new Live(name, events, change) };
  return true;
}

/** End the look at a SELECT, if there is one. */
export async function stop() {
  running?.live.stop();
  running = null;
  const left = names();
  keep([]);
  await Promise.all(left.map((name) => remove(`/queries/${encodeURIComponent(name)}`).catch(() => {})));
}

// When the page is left nobody waits for answers any more.
window.addEventListener("pagehide", () => {
  if (running === null) return;
  const headers = key.get() === null ? {} : { Authorization: `Bearer ${key.get()}` };
  fetch(`/queries/${encodeURIComponent(running.name)}`, { method: "DELETE", headers, keepalive: true, credentials: "omit" });
  keep([]);
});

/** What the SELECT answers now: its rows, or of events the newest. */
export function answer() {
  if (running === null) return null;
  const { live, columns, note } = running;
  if (live.problem) return h("p", { class: "notice bad" }, live.problem);
  const areEvents = live.isEvents;
  const rows = areEvents ? live.newest.flatMap(({ row, times }) => Array(times).fill(row)).slice(0, SHOWN) : live.rows;
  const shown = [...columns, ...(areEvents ? [{ name: "valid_from", type: "" }] : [])];
  const said = areEvents ? `the newest ${number(rows.length)} rows, which hold no longer` : `${number(live.total)} row${live.total === 1 ? "" : "s"} now`;
  return h("section", { "aria-labelledby": "trial-title" },
    h("h2", { id: "trial-title" }, "Answer", h("small", {}, ` ${said}`)),
    h("p", { class: "faint" }, `Nothing is defined: this is answered ${note}, for as long as you look.`),
    table("The answer", shown.map(({ name, type }) => ({ title: name, number: isNumeric(type) })),
      rows.map((row) => shown.map(({ name }) => value(row[name]))), { class: "scroll answer" }),
    h("div", { class: "buttons" },
      h("button", { type: "button", "data-do": "define" }, "Define as a query…"),
      h("button", { type: "button", "data-do": "endLook" }, "Stop")));
}
