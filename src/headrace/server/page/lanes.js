// The lanes of queries that are behind others, as `status.lanes` says: what waits for them, and what they are due of the time and have had.

import { h, table } from "./dom.js";
import { count, length, number } from "./format.js";
import { state } from "./state.js";

/** The lane in which a query is behind others; null where it is in front. */
export const laneOf = (name) => (state.status?.lanes ?? []).find((one) => one.lane !== 0 && one.queries.includes(name)) ?? null;

/** How much waits for a lane: `5 rows, 0.7 s`; empty where nothing does. */
export const waiting = (one) => one.rows ? count(one.rows, "row") + (one.behind === null ? "" : `, ${seconds(one.behind)}`) : "";

/** Nothing where nobody has a priority. */
export function lanes() {
  const found = state.status?.lanes ?? [];
  if (found.length === 0) return null;
  const columns = [
    { title: "Queries together", heads: true }, { title: "Lane", number: true }, { title: "Weight", number: true }, { title: "Due", number: true }, { title: "Had", number: true },
    { title: "Latency", number: true }, { title: "Waiting", number: true }, { title: "Behind", number: true }, { title: "Turns", number: true }, { title: "Utility" },
  ];
  const rows = found.map((one) => [
    one.queries.join(", "), one.lane === 0 ? "front" : String(one.lane), number(one.weight), percent(one.due), one.had === null ? "" : percent(one.had),
    one.latency === null ? "" : length(one.latency, true), one.lane === 0 ? "" : count(one.rows, "row"), one.behind === null ? "" : seconds(one.behind), number(one.turns),
    one.worth.map(({ query, utility }) => `${query} ${utility.toFixed(2)}`).join(", "),
  ]);
  return h("section", { "aria-label": "Lanes" }, h("h2", {}, "Lanes"), table("Lanes", columns, rows, { class: "scroll long" }));
}

const percent = (share) => `${Math.round(100 * share)} %`;
const seconds = (found) => `${found.toFixed(1)} s`;
