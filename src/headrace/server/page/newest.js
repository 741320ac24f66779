// The newest rows of a stream of events, the newest first, as they come.

import { h, table } from "./dom.js";
import { instant, isNumeric, number, value } from "./format.js";

const SHOWN = 100;

const text = (found) => (found === null || found === undefined ? h("span", { class: "faint" }, "NULL")
  : typeof found === "number" || typeof found === "bigint" ? String(found) : value(found));

/** A table of rows of a stream, the newest first. */
export function rowsTable(name, rows, columns) {
  return [
    h("h2", {}, "Newest rows", h("small", {}, rows.length ? ` the newest ${number(rows.length)} that are retained, newest first` : " none is retained yet")),
    rows.length === 0 ? null : table(`Newest rows of ${name}`, columns.map(({ name: title, type }) => ({ title, number: isNumeric(type) })),
      rows.map((row) => columns.map((column) => text(row[column.name]))), { class: "scroll answer" }),
  ];
}

/** A table of events; numbers of raw rows may be names, such as ids, and have no commas. */
export function newestTable(name, events, columns, isCut) {
  const shown = [];
  for (const { row, times } of events) {
    for (let time = 0; time < times && shown.length < SHOWN; time += 1) shown.push(row);
    if (shown.length >= SHOWN) break;
  }
  const all = events.reduce((sum, { times }) => sum + times, 0);
  const heads = [{ title: "At", number: true, heads: true }, ...columns.map(({ name: title, type }) => ({ title, number: isNumeric(type) }))];
  const rows = shown.map((row) => [instant(row.valid_from), ...columns.map((column) => text(row[column.name]))]);
  const said = all > shown.length || isCut ? `the newest ${number(shown.length)}` : number(all);
  return [
    h("h2", {}, "Newest rows", h("small", {}, ` ${all === 0 ? "none has come yet" : `${said}, newest first`}`)),
    all === 0 ? null : table(`Newest rows of ${name}`, heads, rows, { class: "scroll answer" }),
  ];
}
