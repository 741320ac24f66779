// The state of the run beside its limit, and the windows that the manager may make shorter for it, as `status.managed` says.

import { h, table } from "./dom.js";
import { bytes, length } from "./format.js";
import { state } from "./state.js";

/** Nothing where there is no limit. */
export function memory() {
  const managed = state.status?.managed ?? null;
  if (managed === null) return null;
  const scale = Math.max(managed.limit, managed.used, managed.expected);
  return h("section", { "aria-label": "Memory" },
    h("h2", {}, "Memory"),
    h("p", { class: managed.missing ? "bad" : null }, `${bytes(managed.used)} of state, ${bytes(managed.expected)} expected with full windows; ${managed.text}`),
    meter("State", managed.used, scale, managed.limit), meter("Expected", managed.expected, scale, managed.limit),
    managed.working ? meter("An epoch works with", managed.working, scale, managed.limit) : null,
    managed.windows.length ? windows(managed.windows) : null);
}

function meter(title, value, most, limit) {
  return h("label", { class: "meter" }, `${title} `,
    h("meter", { min: 0, max: most, high: limit, value, "aria-label": `${title}: ${bytes(value)} of ${bytes(limit)}` }));
}

/** What stands before the streams of what is no window of time. */
const NOUNS = { rows: "window of rows of ", granule: "granule of " };

function windows(found) {
  const columns = [
    { title: "Window of", heads: true }, { title: "Min", number: true }, { title: "Max", number: true }, { title: "Now", number: true },
    { title: "Of the way", number: true }, { title: "Would be", number: true }, { title: "Why" },
  ];
  // Those come first that are the shortest for their bounds.
  const rows = [...found].sort((a, b) => a.place - b.place).map((one) => {
    const text = (size) => one.kind === "rows" ? `${size} rows` : length(size, one.domain === "timestamp");
    return [(NOUNS[one.kind] ?? "") + one.streams.join(", "), text(one.smallest), text(one.largest), text(one.size), `${Math.round(100 * one.place)} %`, text(one.wanted), one.why];
  });
  return table("Windows within bounds", columns, rows, { class: "scroll long" });
}
