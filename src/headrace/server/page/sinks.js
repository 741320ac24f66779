// Sinks: where the changes of queries go, and how far they have come there. What is wrong is said above each part of the page.

import { remove } from "./api.js";
import { h, table } from "./dom.js";
import { count, number } from "./format.js";
import { ask, say } from "./notices.js";
import { refresh, state } from "./state.js";

export function render() {
  return [
    h("h1", { tabindex: -1 }, "Sinks"),
    state.sinks.length ? overview() : h("p", { class: "faint" },
      state.connection === "connected" ? "None is defined: CREATE SINK name FOR query TO kind OPTIONS (...) does." : ""),
  ];
}

function overview() {
  const columns = [
    { title: "Sink", heads: true }, { title: "Query" }, { title: "To" }, { title: "Where" },
    { title: "Has epoch", number: true }, { title: "Behind", number: true }, { title: "State" }, { title: "" },
  ];
  const rows = state.sinks.map((sink) => [
    sink.name, h("a", { href: `#/queries/${encodeURIComponent(sink.query)}` }, sink.query), sink.kind, h("code", {}, sink.place),
    number(sink.epoch), sink.behind === null ? "" : count(sink.behind, "epoch"), condition(sink),
    // Those of a program are its own.
    sink.kind === "Python" ? "" : h("button", {
      type: "button", class: "danger", "data-do": "dropSink", "data-name": sink.name, "aria-label": `Drop ${sink.name}…`,
    }, "Drop…"),
  ]);
  return table("All sinks", columns, rows);
}

function condition(sink) {
  if (sink.problem !== null) return h("span", { class: "tag bad" }, "fails");
  if (sink.epoch === null) return h("span", { class: "tag" }, "at rest");
  return sink.behind === 0 ? "has everything" : "delivering";
}

/** The sinks of a query, by their names. */
export const sinksOf = (query) => state.sinks.filter((sink) => sink.query === query).map((sink) => sink.name);

export const actions = {
  async dropSink({ name }) {
    const sure = await ask({
      title: `Drop the sink ${name}?`, text: "It takes what is committed, and nothing after that. What it has delivered stays.",
      yes: `Drop ${name}`, danger: true,
    });
    if (!sure) return;
    await remove(`/sinks/${encodeURIComponent(name)}`);
    await refresh();
    say(`the sink ${name} is dropped`);
  },
};
