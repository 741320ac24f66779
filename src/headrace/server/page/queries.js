// Queries: which there are, and one with its answer, what holds it back, and what can be done with it.

import { carryOut, remove } from "./api.js";
import { h, table } from "./dom.js";
import { filterBox, fits } from "./filter.js";
import { newestTable } from "./newest.js";
import { behind, count, instant, isNumeric, number, quoted, rate, value } from "./format.js";
import { hourOf, wholeHour } from "./hour.js";
import { laneOf, lanes, waiting } from "./lanes.js";
import { Live } from "./live.js";
import { ask, say } from "./notices.js";
import { multiples, squares } from "./maps.js";
import { bars, drawable, labelText, steps } from "./plots.js";
import { rateFigure } from "./rates.js";
import { memory } from "./memory.js";
import { sinksOf } from "./sinks.js";
import { change, refresh, state, statusOf } from "./state.js";
import { isTrial } from "./trial.js";
import { whyPanel } from "./why.js";

let live = null;
let picked = { form: null, measure: null, by: null };
const definitions = new Map();

const address = (name, ...rest) => `#/queries/${[name, ...rest].map(encodeURIComponent).join("/")}`;

export function render([name, view]) {
  const query = state.queries.find((one) => one.name === name) ?? null;
  return h("div", { class: "split" },
    h("section", { class: "list", "aria-labelledby": "queries-title" }, list(name)),
    h("section", { class: "detail" }, name === undefined ? overview() : query === null ? missing(name) : detail(query, view)));
}

/** What is done once a query is shown: its answer is followed, and no other. */
export function shown([name]) {
  const query = state.queries.find((one) => one.name === name);
  const exists = query !== undefined;
  if (live !== null && (live.name !== name || !exists || live.isEvents !== query.events)) {
    live.stop();
    live = null;
    picked = { form: null, measure: null, by: null };
  }
  if (exists && live === null) {
    live = new Live(name, query.events, change);
    definitions.delete(name);
    carryOut(`SHOW CREATE QUERY ${quoted(name)}`)
      .then(([found]) => definitions.set(name, found.text), () => {}).then(() => change());
  }
}

window.addEventListener("hashchange", () => {
  if (!location.hash.startsWith("#/queries/")) {
    live?.stop();
    live = null;
  }
});

function list(chosen) {
  const entries = state.queries.filter((query) => fits("queries", query.name) && !isTrial(query.name)).map((query) => {
    const status = statusOf("queries", query.name);
    return h("li", { "data-key": query.name }, h("a", { href: address(query.name), "aria-current": query.name === chosen ? "true" : null },
      h("span", { class: "name" }, query.name), mark(query, status),
      h("small", {}, status === null ? "not running" : status.rate === null ? "no rate yet" : `${rate(status.rate)} changes/s`)));
  });
  const waiting = Object.entries(state.waiting);
  return [
    h("details", { class: "foldable", open: !matchMedia("(max-width: 800px)").matches }, h("summary", { id: "queries-title" }, "Queries", h("small", {}, ` ${state.queries.filter((query) => !isTrial(query.name)).length}`)),
      filterBox("queries", "Find a query", state.queries.length),
      entries.length ? h("ul", {}, entries) : h("p", { class: "faint" }, state.connection === "connected" ? state.queries.length ? "None fits." : "None is defined." : "")),
    h("p", {}, h("a", { class: "button", href: "#/editor" }, "New query")),
    waiting.length ? [h("h3", {}, "Waiting"), h("dl", {}, waiting.map(([what, why]) => [h("dt", {}, what), h("dd", {}, why)]))] : null,
  ];
}

function mark(query, status) {
  if (status?.failed) return h("span", { class: "tag bad" }, "failed");
  if (query.paused) return h("span", { class: "tag warn" }, "paused");
  if (status === null) return h("span", { class: "tag" }, "at rest");
  const lane = laneOf(query.name);
  return lane !== null && waiting(lane) ? h("span", { class: "tag warn" }, `behind: ${waiting(lane)}`) : null;
}

function overview() {
  const rows = state.queries.filter((query) => fits("queries", query.name) && !isTrial(query.name)).map((query) => {
    const status = statusOf("queries", query.name);
    return [
      h("a", { href: address(query.name) }, query.name),
      mark(query, status) ?? "running",
      status === null ? "" : number(status.changes),
      status === null ? "" : rate(status.rate),
      status === null ? query.answer : instant(status.heartbeat),
      status === null ? "" : behind(status.heartbeat, status.latest),
      status?.held_by ? h("a", { href: address(query.name, "why"), "aria-label": `${status.held_by} holds back ${query.name}: why` }, status.held_by) : "",
    ];
  });
  const columns = [
    { title: "Query", heads: true }, { title: "State" }, { title: "Changes", number: true }, { title: "Changes/s", number: true },
    { title: "Final below", number: true }, { title: "Lag", number: true }, { title: "Held by" },
  ];
  return [h("h1", { tabindex: -1 }, "All queries"), wholeHour(), memory(), lanes(),
    rows.length ? table("All queries", columns, rows, { class: "scroll long" })
    : h("p", {}, "A query is defined in the ", h("a", { href: "#/editor" }, "editor"), ", and answered from then on.")];
}

const missing = (name) => [h("h1", { tabindex: -1 }, name),
  h("p", {}, state.connection === "connected" ? `There is no query ${name}.` : "")];

function detail(query, view) {
  const status = statusOf("queries", query.name);
  return [
    h("div", { class: "heading" }, h("h1", { tabindex: -1 }, query.name), mark(query, status), buttons(query, view)),
    h("p", { class: "facts" }, facts(query, status)),
    status?.failed ? h("p", { class: "notice bad" }, [status.failed, status.hint].filter(Boolean).join("; ")) : null,
    query.notes.map((note) => h("p", { class: "notice warn" }, `${note.message}${note.hint ? ` (hint: ${note.hint})` : ""}`)),
    view === "why" ? whyPanel(query.name, status) : null,
    answer(query),
    hourOf(...(status?.reads ?? []).map((name) => [`In from ${name}`, "streams", name]), ["Changes out", "queries", query.name]),
    definition(query.name),
  ];
}

function facts(query, status) {
  if (status === null) return query.answer;
  const lag = behind(status.heartbeat, status.latest);
  return [
    fact("final below", instant(status.heartbeat)), lag ? fact("lag", lag) : null, fact("changes", number(status.changes)),
    status.rate === null ? null : fact("per second", rate(status.rate)),
    status.held_by ? fact("held by", h("a", { href: `#/streams/${encodeURIComponent(status.held_by)}` }, status.held_by)) : null,
    status.gaps.length ? fact("gaps", number(status.gaps.length)) : null,
    sinksOf(query.name).length ? fact("goes to", h("a", { href: "#/sinks" }, sinksOf(query.name).join(", "))) : null,
  ];
}

const fact = (title, found) => h("span", {}, h("small", {}, title), " ", h("b", {}, found));

function buttons(query, view) {
  const button = (action, text, kind = null) => h("button", { type: "button", class: kind, "data-do": action, "data-name": query.name }, text);
  return h("div", { class: "buttons" },
    view === "why" ? h("a", { class: "button", href: address(query.name) }, "Hide why") : h("a", { class: "button", href: address(query.name, "why") }, "Why"),
    h("a", { class: "button", href: `#/plan/query/${encodeURIComponent(query.name)}` }, "Plan"),
    query.paused ? button("resume", "Resume") : button("pause", "Pause"),
    button("replace", "Replace…"), button("drop", "Drop…", "danger"));
}

function answer(query) {
  if (live === null || live.name !== query.name) return null;
  if (live.problem) return h("p", { class: "notice bad" }, live.problem);
  if (!live.isLoaded) return h("p", { class: "faint", role: "status" }, "The answer is being read.");
  if (live.isEvents) {
    return [
      rateFigure(query.name, live.newest, query.columns, picked.by, live),
      newestTable(query.name, live.newest, query.columns, live.isCut),
    ];
  }
  const { labels } = drawable(query.columns, live.rows);
  const columns = query.columns.map(({ name, type }) => ({ title: name, number: isNumeric(type) && !labels.includes(name) }));
  const text = (name, found) => (found === null ? h("span", { class: "faint" }, "NULL") : labels.includes(name) ? labelText(found) : value(found));
  const rows = live.rows.map((row) => query.columns.map(({ name }) => text(name, row[name])));
  const cut = live.total > live.rows.length ? `the first ${number(live.rows.length)} of ${count(live.total, "row")}` : count(live.total, "row");
  return [
    picture(query),
    h("h2", {}, "Answer", h("small", {}, live.note ? "" : ` ${cut}`)),
    live.note ? h("p", { class: "faint" }, live.note) : null,
    table(`Answer of ${query.name}`, columns, rows, { class: "scroll answer" }),
  ];
}

function picture(query) {
  const { measures, labels, form } = drawable(query.columns, live.rows);
  if (measures.length === 0) return null;
  const chosen = picked.form ?? form;
  const measure = measures.includes(picked.measure) ? picked.measure : measures[0];
  const drawn = drawnAs(chosen, query.name, labels, measure);
  const choice = (one, text) => h("button", { type: "button", "aria-pressed": String(one === chosen), "data-do": "form", "data-form": one }, text);
  return h("figure", {},
    h("div", { class: "choices" },
      h("div", { role: "group", "aria-label": "Picture", class: "choice" }, choice("steps", "Over time"),
        labels.length > 0 ? choice("multiples", "Each group") : null, choice("bars", "By group"),
        labels.length === 2 ? choice("squares", "Pairs") : null),
      measures.length > 1 ? h("label", {}, "Value ", h("select", { "data-do": "measure" },
        measures.map((one) => h("option", { value: one, selected: one === measure }, one)))) : h("span", { class: "faint" }, measure)),
    drawn ?? h("p", { class: "faint" }, "There is nothing to draw yet."));
}

function drawnAs(form, name, labels, measure) {
  if (form === "bars") return bars(name, live.rows, labels, measure);
  if (form === "squares" && labels.length === 2) return squares(name, live.rows, labels, measure);
  if (form === "multiples") return multiples(name, live.history, labels, measure, live.until);
  return steps(name, live.history, labels, measure, live.until);
}

function definition(name) {
  const text = definitions.get(name);
  return text === undefined ? null : h("details", {}, h("summary", {}, "Definition"), h("pre", { tabindex: 0 }, text));
}

async function alter(name, what) {
  const results = await carryOut(`ALTER QUERY ${quoted(name)} ${what}`);
  say(results.map((one) => one.text).filter(Boolean).join("\n") || `${name}: ${what.toLowerCase()} is done`);
  await refresh();
}

export const actions = {
  pause: ({ name }) => alter(name, "PAUSE"),
  resume: ({ name }) => alter(name, "RESUME"),
  async replace({ name }) {
    const [found] = await carryOut(`SHOW CREATE QUERY ${quoted(name)}`);
    sessionStorage.setItem("headrace-text", found.text.replace(/^CREATE QUERY/m, "CREATE OR REPLACE QUERY"));
    location.hash = "#/editor/new";
  },
  async drop({ name }) {
    const sinks = sinksOf(name);
    const and = sinks.length ? `, and so ${sinks.length > 1 ? "are its sinks" : "is its sink"} ${sinks.join(", ")}` : "";
    const sure = await ask({
      title: `Drop ${name}?`, text: `Its answer and its state are dropped with it${and}. This cannot be taken back.`, yes: `Drop ${name}`, danger: true,
    });
    if (!sure) return;
    await remove(`/queries/${encodeURIComponent(name)}${sinks.length ? "?cascade=true" : ""}`);
    await refresh();
    say(`${name} is dropped`);
    location.hash = "#/queries";
  },
  form({ form }) {
    picked.form = form;
    change();
  },
  by(_, select) {
    picked.by = select.value || null;
    change();
  },
  measure(_, select) {
    picked.measure = select.value;
    change();
  },
};
