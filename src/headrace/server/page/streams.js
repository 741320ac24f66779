// Streams: rate, lag, lateness, and what is kept of each.

import { carryOut, rows as rowsOf } from "./api.js";
import { h, table } from "./dom.js";
import { filterBox, fits } from "./filter.js";
import { hourOf } from "./hour.js";
import { rowsTable } from "./newest.js";
import { behind, bytes, count, instant, length, number, quoted, rate, seconds } from "./format.js";
import { age, change, state, statusOf } from "./state.js";

const SILENT = 10;
const KINDS = { pushed: "sent by clients", source: "read from a source", derived: "derived" };
const EVERY = 2_000;
const NEWEST = 50;
/** Of the stream that is shown: its statement, its newest rows or why there are none, and when they were asked for. */
let seen = { name: null, asked: -Infinity, statement: null, rows: null, problem: null };
const address = (name) => `#/streams/${encodeURIComponent(name)}`;

export function render([name]) {
  const stream = state.streams.find((one) => one.name === name) ?? null;
  return [
    h("h1", { tabindex: -1 }, name === undefined ? "Streams" : name),
    name === undefined ? null : stream === null ? h("p", {}, `There is no stream ${name}.`) : detail(stream),
    name === undefined ? null : h("h2", {}, "All streams"),
    filterBox("streams", "Find a stream", state.streams.length),
    state.streams.length ? overview(name) : h("p", { class: "faint" }, "None is defined."),
  ];
}

/** What is done once a stream is shown: its statement is asked for, and its newest rows again and again. */
export function shown([name]) {
  const exists = state.streams.some((one) => one.name === name);
  if (!exists) return;
  if (seen.name !== name) {
    seen = { name, asked: -Infinity, statement: null, rows: null, problem: null };
    const mine = seen;
    carryOut(`SHOW CREATE STREAM ${quoted(name)}`).then(([found]) => { mine.statement = found.text; }, () => {}).then(() => change());
  }
  if (performance.now() - seen.asked > EVERY) {
    const mine = seen;
    mine.asked = performance.now();
    rowsOf(`/streams/${encodeURIComponent(name)}/tail?rows=${NEWEST}`).then((rows) => { Object.assign(mine, { rows, problem: null }); },
      (error) => { mine.problem = `${error.message}${error.hint ? ` (hint: ${error.hint})` : ""}`; }).then(() => change());
  }
}

function overview(chosen) {
  const columns = [
    { title: "Stream", heads: true }, { title: "Rows", number: true }, { title: "Rows/s", number: true }, { title: "Heartbeat", number: true },
    { title: "Lag", number: true }, { title: "Moved", number: true }, { title: "Late", number: true }, { title: "Rejected", number: true },
    { title: "Disorder", number: true }, { title: "Retained", number: true }, { title: "State" },
  ];
  const rows = state.streams.filter((stream) => fits("streams", stream.name)).map((stream) => {
    const status = statusOf("streams", stream.name);
    const link = h("a", { href: address(stream.name), "aria-current": stream.name === chosen ? "true" : null }, stream.name);
    if (status === null) return [link, "", "", "", "", "", "", "", "", "", "no query reads it"];
    return [
      link, number(status.rows), rate(status.rate), instant(status.heartbeat), behind(status.heartbeat, status.latest), moved(status),
      lettersLink(stream.name, status.late), lettersLink(stream.name, status.rejected), length(status.disorder, stream.time === "TIMESTAMP"),
      retained(status), condition(status),
    ];
  });
  return table("All streams", columns, rows, { class: "scroll long" });
}

const moved = (status) => (status.heartbeat === "end" ? "" : `${seconds(age(status))} ago`);

const lettersLink = (name, found) => (found === 0 ? "0"
  : h("a", { href: `#/letters/${encodeURIComponent(name)}`, "aria-label": `${found}: show the dead letters of ${name}` }, number(found)));

/** The span of the rows that are kept, where any are. */
function retained({ retained: kept, latest }) {
  if (kept === null) return "";
  return behind(kept.since, latest) || count(kept.rows, "row");
}

function condition(status) {
  if (status.problem !== null) return h("span", { class: "tag bad" }, "given up");
  if (status.heartbeat === "end") return "at its end";
  if (status.idle) return h("span", { class: "tag" }, "idle");
  if (age(status) > SILENT) return h("span", { class: "tag warn" }, "silent");
  return "";
}

function detail(stream) {
  const status = statusOf("streams", stream.name);
  const isTime = stream.time === "TIMESTAMP";
  const held = (state.status?.queries ?? []).filter((query) => query.held_by === stream.name);
  const pairs = [["Rows come", KINDS[stream.kind]], ["Time", stream.timestamp ? `${stream.time}, by ${stream.timestamp}` : stream.time]];
  if (status !== null) {
    pairs.push(
      ["Heartbeat", `${instant(status.heartbeat)}${status.heartbeat === "end" ? "" : `, moved ${moved(status)}`}`],
      ["Newest row", instant(status.latest)],
      ["Disorder", `${length(status.disorder, isTime)}${status.estimated ? ", estimated" : ""}`],
      ["Set apart", `${count(status.late, "late row")}, ${number(status.rejected)} rejected`],
      ["Retained", status.retained === null ? "nothing" : `${count(status.retained.rows, "row")}, ${bytes(status.retained.size)}, ${status.retained.since === null ? "none is gone" : `since ${instant(status.retained.since)}`}`],
      ["Holds back", held.length ? held.map((query, place) => [place ? ", " : "", h("a", { href: `#/queries/${encodeURIComponent(query.name)}/why` }, query.name)]) : "no query"],
    );
  }
  return h("section", { class: "panel", "aria-label": `The stream ${stream.name}` },
    status?.problem ? h("p", { class: "notice bad" }, status.problem) : null,
    status !== null && condition(status) ? h("p", {}, condition(status), status.problem === null && age(status) > SILENT && status.heartbeat !== "end"
      ? ` Its heartbeat has not moved for ${seconds(age(status))}.` : "") : null,
    h("dl", { class: "pairs" }, pairs.map(([title, text]) => h("div", {}, h("dt", {}, title), h("dd", {}, text)))),
    readers(stream.name),
    newest(stream),
    seen.name === stream.name && seen.statement !== null
      ? h("details", {}, h("summary", {}, "Definition"), h("pre", { tabindex: 0 }, seen.statement)) : null,
    table(`Columns of ${stream.name}`, [{ title: "Column", heads: true }, { title: "Type", code: true }], stream.columns.map((column) => [column.name, column.type])),
    h("p", {}, h("a", { href: `#/letters/${encodeURIComponent(stream.name)}` }, `Dead letters of ${stream.name}`)));
}

/** The rates over the last hour: of the stream, and of the queries that read it. */
function readers(name) {
  const reading = (state.status?.queries ?? []).filter((query) => query.reads.includes(name)).slice(0, 7);
  return hourOf(["Rows in", "streams", name], ...reading.map((query) => [`Out by ${query.name}`, "queries", query.name]));
}

function newest(stream) {
  if (seen.name !== stream.name || (seen.rows === null && seen.problem === null)) return null;
  if (seen.problem !== null) return h("p", { class: "faint" }, `No rows to be shown: ${seen.problem}`);
  return rowsTable(stream.name, [...seen.rows].reverse(), stream.columns);
}
