// Relations: their keys, when their rows are valid, and how each is defined.

import { carryOut } from "./api.js";
import { h, table } from "./dom.js";
import { instant, number, quoted } from "./format.js";
import { change, state, statusOf } from "./state.js";

const definitions = new Map();
const address = (name) => `#/relations/${encodeURIComponent(name)}`;

export function render([name]) {
  const relation = state.relations.find((one) => one.name === name) ?? null;
  return [
    h("h1", { tabindex: -1 }, name === undefined ? "Relations" : name),
    name === undefined ? null : relation === null ? h("p", {}, `There is no relation ${name}.`) : detail(relation),
    name === undefined ? null : h("h2", {}, "All relations"),
    state.relations.length ? overview(name) : h("p", { class: "faint" }, state.connection === "connected" ? "None is defined." : ""),
  ];
}

/** What is done once a relation is shown: how it is defined is asked for, once. */
export function shown([name]) {
  if (name === undefined || definitions.has(name) || !state.relations.some((one) => one.name === name)) return;
  definitions.set(name, null);
  carryOut(`SHOW CREATE RELATION ${quoted(name)}`)
    .then(([found]) => definitions.set(name, found.text), () => definitions.delete(name)).then(() => change());
}

function valid(relation) {
  if (relation.refreshed) return "until they are read again";
  if (relation.changing) return "until they are changed";
  return relation.valid === null ? "always" : relation.valid.join(" to ");
}

function overview(chosen) {
  const columns = [
    { title: "Relation", heads: true }, { title: "Key" }, { title: "Rows are valid" }, { title: "Rows", number: true }, { title: "Heartbeat", number: true },
  ];
  const rows = state.relations.map((relation) => {
    const status = statusOf("streams", relation.name);
    const link = h("a", { href: address(relation.name), "aria-current": relation.name === chosen ? "true" : null }, relation.name);
    return [link, relation.key.join(", "), valid(relation), number(status?.rows), status === null ? "" : instant(status.heartbeat)];
  });
  return table("All relations", columns, rows);
}

function detail(relation) {
  const text = definitions.get(relation.name) ?? null;
  return h("section", { class: "panel", "aria-label": `The relation ${relation.name}` },
    table(`Columns of ${relation.name}`, [{ title: "Column", heads: true }, { title: "Type", code: true }],
      relation.columns.map((column) => [column.name, column.type])),
    text === null ? null : h("pre", { tabindex: 0, role: "region", "aria-label": `Definition of ${relation.name}` }, text));
}
