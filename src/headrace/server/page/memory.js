// The state and the processor time of the run beside their limits, and the windows that the manager may make shorter for it, as `status.managed` says.

import { h, table } from "./dom.js";
import { bytes, length } from "./format.js";
import { state } from "./state.js";

/** Nothing where there is no limit. */
export function memory() {
  const managed = state.status?.managed ?? null;
  if (managed === null) return null;
  const { limit, time } = managed, scale = Math.max(limit ?? 0, managed.used, managed.expected);
  return h("section", { "aria-label": "Memory" },
    h("h2", {}, "Memory"),
    h("p", { class: managed.missing ? "bad" : null }, `${bytes(managed.used)} of state, ${bytes(managed.expected)} expected with full windows; ${managed.text}`),
    limit === null ? null : [meter("State", managed.used, scale, limit), meter("Expected", managed.expected, scale, limit),
      managed.working ? meter("An epoch works with", managed.working, scale, limit) : null],
    time ? processorTime(time) : null,
    managed.windows.length ? windows(managed.windows) : null);
}

function processorTime(time) {
  const scale = Math.max(time.limit, time.used, time.expected), shown = (value) => `${Math.round(1000 * value) / 1000} cores`;
  return [h("p", { class: time.missing ? "bad" : null }, `${shown(time.used)} of processor time lately, ${shown(time.expected)} expected with full windows; ${time.text}`),
    meter("Processor time", time.used, scale, time.limit, shown), meter("Expected processor time", time.expected, scale, time.limit, shown)];
}

function meter(title, value, most, limit, shown = bytes) {
  return h("label", { class: "meter" }, `${title} `,
    h("meter", { min: 0, max: most, high: limit, value, "aria-label": `${title}: ${shown(value)} of ${shown(limit)}` }));
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
