// Why a query has no newer output: what WHY says, with the way to the stream that holds it back.

import { get } from "./api.js";
import { h } from "./dom.js";
import { change, state } from "./state.js";

let known = { name: null, found: null, problem: null, received: -1 };

/** What WHY says of a query, asked again with every status. */
export function whyPanel(name, status) {
  if (known.name !== name) known = { name, found: null, problem: null, received: -1 };
  if (known.received !== state.received && state.connection === "connected") look(name);
  const { found, problem } = known;
  return h("section", { class: "why", "aria-labelledby": "why-title" },
    h("h2", { id: "why-title" }, `Why ${name} has no newer answer`),
    problem ? h("p", {}, problem) : null,
    found ? [findings(found, status), chain(found, status)] : null);
}

async function look(name) {
  known.received = state.received;
  try {
    const found = await get(`/why/${encodeURIComponent(name)}`);
    if (known.name === name) Object.assign(known, { found, problem: null });
  } catch (error) {
    Object.assign(known, { problem: error.message });
  }
  change();
}

const streamLink = (name) => h("a", { href: `#/streams/${encodeURIComponent(name)}` }, name);

/** A text in which the names of streams are links. */
function linked(text, names) {
  const escaped = names.map((name) => name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  if (escaped.length === 0) return text;
  const parts = text.split(new RegExp(`(?<![\\w])(${escaped.join("|")})(?![\\w])`));
  return parts.map((part, index) => (index % 2 ? streamLink(part) : part));
}

function findings(found, status) {
  const names = status?.reads ?? [];
  return h("ul", { class: "findings" }, found.findings.map((one) => h("li", {}, linked(one.message, names),
    one.hint ? h("div", { class: "hint" }, "hint: ", one.hint) : null)));
}

function chain(found, status) {
  if (found.chain.length === 0) return null;
  const items = found.chain.map((line, index) => {
    const [, at, rest] = line.match(/^(.*?)\s{2,}(.*)$/) ?? [null, "", line];
    const operator = rest.match(/^#(\d+) /);
    const isLast = index === found.chain.length - 1;
    return h("li", { class: isLast ? "holds" : null }, h("code", {}, at), " ",
      operator ? h("a", { href: `#/plan/operator/${operator[1]}` }, rest) : rest,
      isLast && status?.held_by ? [" — the stream ", streamLink(status.held_by), " holds it back"] : null);
  });
  return [h("h3", {}, "It waits for"), h("ol", { class: "chain" }, items)];
}
