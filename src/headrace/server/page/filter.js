// Boxes that narrow long lists down to what is looked for.

import { h } from "./dom.js";
import { change } from "./state.js";

const MANY = 8;
const wanted = new Map();

/** A box for the list of a name; null where the list is short and nothing is looked for. */
export function filterBox(name, label, size = Infinity) {
  if (size <= MANY && !wanted.get(name)) return null;
  return h("input", { type: "search", class: "filter", "data-key": `filter ${name}`, "data-filter": name, placeholder: label, "aria-label": label, autocomplete: "off", spellcheck: "false" });
}

/** Whether some of the texts of an entry have what is looked for in a list. */
export function fits(name, ...texts) {
  return texts.join(" ").toLowerCase().includes(looked(name).trim().toLowerCase());
}

/** What is looked for in a list. */
export const looked = (name) => wanted.get(name) ?? "";

document.addEventListener("input", (event) => {
  const { filter } = event.target.dataset;
  if (filter === undefined) return;
  wanted.set(filter, event.target.value);
  change();
});
