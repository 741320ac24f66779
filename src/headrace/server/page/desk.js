// What lies beside the statements: tabs, what was carried out before, and the names that statements can use.

import { h } from "./dom.js";
import { filterBox, fits, looked } from "./filter.js";
import { quoted } from "./format.js";
import { state } from "./state.js";
import { isTrial } from "./trial.js";

const MANY = 30; // of more names of a kind the list is folded at first
const [TABS, PAST] = ["headrace-tabs", "headrace-past"];
const [MOST_TABS, MOST_PAST, LONGEST] = [12, 50, 20_000];

const read = (key, otherwise) => {
  try {
    return JSON.parse(localStorage.getItem(key)) ?? otherwise;
  } catch {
    return otherwise;
  }
};
const write = (key, found) => localStorage.setItem(key, JSON.stringify(found));

/** The texts that are open, kept between visits: {texts, chosen}. */
export const tabs = {
  get all() {
    return read(TABS, { texts: [""], chosen: 0 });
  },
  get text() {
    const { texts, chosen } = this.all;
    return texts[chosen] ?? "";
  },
  set text(text) {
    const { texts, chosen } = this.all;
    texts[chosen] = text;
    write(TABS, { texts, chosen });
  },
  /** Open a text in a tab of its own, or in one that is empty. */
  open(text) {
    const texts = this.all.texts.slice(-MOST_TABS + 1);
    const empty = texts.indexOf("");
    if (empty < 0) texts.push(text);
    else texts[empty] = text;
    write(TABS, { texts, chosen: empty < 0 ? texts.length - 1 : empty });
  },
  choose(chosen) {
    write(TABS, { ...this.all, chosen });
  },
  close(index) {
    const { texts, chosen } = this.all;
    texts.splice(index, 1);
    write(TABS, { texts: texts.length ? texts : [""], chosen: Math.max(0, chosen - (index <= chosen ? 1 : 0)) });
  },
};

/** What was carried out, the newest first. */
export const past = {
  get all() {
    return read(PAST, []);
  },
  add(text) {
    if (!text.trim() || text.length > LONGEST) return;
    write(PAST, [text, ...this.all.filter((one) => one !== text)].slice(0, MOST_PAST));
  },
  forget: () => localStorage.removeItem(PAST),
};

const titled = (text, number) => text.replace(/--[^\n]*/g, " ").trim().split(/\s+/).slice(0, 4).join(" ").slice(0, 24) || `Text ${number}`;

/** The tabs, with a way to open another one. */
export function tabRow() {
  const { texts, chosen } = tabs.all;
  return h("div", { class: "tabs", role: "group", "aria-label": "Texts" },
    texts.map((text, index) => h("span", { class: "choice", "data-key": index },
      h("button", { type: "button", "data-do": "chooseTab", "data-index": index, "aria-pressed": String(index === chosen) }, titled(text, index + 1)),
      texts.length > 1 ? h("button", { type: "button", "data-do": "closeTab", "data-index": index, "aria-label": `Close ${titled(text, index + 1)}` }, "×") : null)),
    texts.length < MOST_TABS ? h("button", { type: "button", class: "quiet", "data-do": "openTab", "aria-label": "A new text" }, "+") : null);
}

/** The streams, relations and queries with their columns, and what was carried out. */
export function beside() {
  const kinds = [["Streams", state.streams], ["Relations", state.relations], ["Queries", state.queries.filter((one) => !isTrial(one.name))]];
  const size = kinds.reduce((sum, [, found]) => sum + found.length, 0);
  return h("aside", { class: "beside", "aria-label": "Names and earlier statements" },
    filterBox("names", "Find a name or a column", size),
    kinds.map(([title, found]) => group(title, found.filter((one) => fits("names", one.name, ...one.columns.map((column) => column.name))))),
    earlier());
}

function group(title, found) {
  if (found.length === 0) return null;
  return h("details", { open: found.length <= MANY || looked("names") !== "", "data-key": title }, h("summary", {}, title, h("small", {}, ` ${found.length}`)),
    h("ul", {}, found.map((one) => h("li", { "data-key": one.name }, insertion(one.name), h("details", { open: looked("names") !== "" && !fits("names", one.name) },
      h("summary", { "aria-label": `Columns of ${one.name}` }),
      h("ul", {}, one.columns.map((column) => h("li", {}, insertion(column.name), h("small", {}, ` ${column.type}`)))))))));
}

const insertion = (name) => h("button", { type: "button", class: "quiet", "data-do": "insertName", "data-name": quoted(name), title: `Insert ${name}` }, name);

function earlier() {
  const all = past.all;
  if (all.length === 0) return null;
  return h("details", { "data-key": "earlier" }, h("summary", {}, "Carried out before", h("small", {}, ` ${all.length}`)),
    h("ul", {}, all.map((text, index) => h("li", {}, h("button", { type: "button", class: "quiet", "data-do": "openPast", "data-index": index, title: text }, text.trim().slice(0, 60))))),
    h("button", { type: "button", class: "quiet", "data-do": "forgetPast" }, "Forget them"));
}
