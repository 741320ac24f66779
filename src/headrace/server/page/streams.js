// Streams: rate, lag, lateness, and what is kept of each.

import { h, table } from "./dom.js";
import { filterBox, fits } from "./filter.js";
import { behind, bytes, count, instant, length, number, rate, seconds } from "./format.js";
import { age, state, statusOf } from "./state.js";

const SILENT = 10;
const KINDS = { pushed: "sent by clients", source: "read from a source", derived: "derived" };
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
      ["Retained", status.retained === null ? "nothing" : `${count(status.retained.rows, "row")}, ${bytes(status.retained.size)}, since ${instant(status.retained.since)}`],
      ["Holds back", held.length ? held.map((query, place) => [place ? ", " : "", h("a", { href: `#/queries/${encodeURIComponent(query.name)}/why` }, query.name)]) : "no query"],
    );
  }
  return h("section", { class: "panel", "aria-label": `The stream ${stream.name}` },
    status?.problem ? h("p", { class: "notice bad" }, status.problem) : null,
    status !== null && condition(status) ? h("p", {}, condition(status), status.problem === null && age(status) > SILENT && status.heartbeat !== "end"
      ? ` Its heartbeat has not moved for ${seconds(age(status))}.` : "") : null,
    h("dl", { class: "pairs" }, pairs.map(([title, text]) => h("div", {}, h("dt", {}, title), h("dd", {}, text)))),
    table(`Columns of ${stream.name}`, [{ title: "Column", heads: true }, { title: "Type", code: true }], stream.columns.map((column) => [column.name, column.type])),
    h("p", {}, h("a", { href: `#/letters/${encodeURIComponent(stream.name)}` }, `Dead letters of ${stream.name}`)));
}
