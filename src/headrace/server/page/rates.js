// How many events there were over time, in bars of a length of time each, stacked by the values of a column.

import { h, s } from "./dom.js";
import { isNumeric, number, position, seconds, value } from "./format.js";
import { roundTicks, timeText, timeTicks } from "./plots.js";

const GROUPS = 5;
const BARS = 60;
const OTHERS = "others";
const [LEFT, WIDTH, HEIGHT, TOP] = [64, 860, 180, 12];
const BOTTOM = HEIGHT - 26;
const LENGTHS = [1, 10, 100, 1e3, 2e3, 5e3, 1e4, 3e4, 6e4, 3e5, 6e5, 18e5, 36e5, 108e5, 216e5, 432e5, 864e5];

/** The columns by whose values events can be told apart: of few values, and no numbers. */
export const groupings = (columns) => columns.filter(({ type }) => !isNumeric(type) && !/^(TIMESTAMP|DATE|ARRAY|STRUCT|MAP)/.test(type))
  .map(({ name }) => name);

/** The length of a bar: of time a round one, at least a slide apart. */
function lengthOf(span, isTime) {
  const least = span / BARS;
  return isTime ? LENGTHS.find((one) => one >= least) ?? 864e5 * Math.ceil(least / 864e5) : roundTicks(0, Math.max(1, least), 1).find((one) => one >= Math.max(1, least));
}

/** Events as bars: when each begins, and how many there are of each group; the rarest groups are "others". */
export function barsOf(events, by, length) {
  const totals = new Map();
  const text = (row) => (by === null ? "" : value(row[by]));
  for (const { row, times } of events) totals.set(text(row), (totals.get(text(row)) ?? 0) + times);
  const names = [...totals].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).map(([name]) => name);
  const shown = names.slice(0, names.length > GROUPS + 1 ? GROUPS : GROUPS + 1);
  const groups = names.length > shown.length ? [...shown, OTHERS] : shown;
  const found = new Map();
  for (const { row, at, times } of events) {
    const begin = Math.floor(at / length) * length;
    if (!found.has(begin)) found.set(begin, groups.map(() => 0));
    const place = shown.indexOf(text(row));
    found.get(begin)[place < 0 ? groups.length - 1 : place] += times;
  }
  return { groups, bars: [...found].sort((a, b) => a[0] - b[0]) };
}

/** Bars of how many events there were up to an instant; null where there are none. `isCut`: older ones are not there. */
export function rates(name, rows, by, { isCut, until }) {
  let events = rows.map(({ row, times }) => ({ row, times, at: position(row.valid_from) })).filter(({ at }) => at !== null);
  if (events.length === 0) return null;
  const isTime = typeof rows[0].row.valid_from === "string";
  const least = events.reduce((a, { at }) => Math.min(a, at), Infinity);
  const high = events.reduce((a, { at }) => Math.max(a, at), position(until) ?? -Infinity);
  const length = lengthOf(high - least, isTime);
  // Of the oldest bar a part is missing.
  const low = isCut ? (Math.floor(least / length) + 1) * length : Math.floor(least / length) * length;
  events = events.filter(({ at }) => at >= low);
  if (events.length === 0) return null;
  const { groups, bars } = barsOf(events, by, length);
  return drawn(name, { groups, bars, low, high: (Math.floor(high / length) + 1) * length, length, isTime });
}

function drawn(name, { groups, bars, low, high, length, isTime }) {
  const right = groups.length > 1 ? 150 : 16;
  const sum = (counts) => counts.reduce((a, b) => a + b, 0);
  const most = Math.max(1, ...bars.map(([, counts]) => sum(counts)));
  const ticks = roundTicks(0, most, 4);
  const x = (at) => LEFT + ((at - low) / (high - low)) * (WIDTH - LEFT - right);
  const y = (at) => BOTTOM - (at / ticks[ticks.length - 1]) * (BOTTOM - TOP);
  const unit = isTime ? seconds(length / 1e3).replace(/\.0 s$/, " s").replace(/^1 (\w)/, "$1").replace(/^s$/, "second").replace(/ 0 (s|min)$/, "") : length === 1 ? "instant" : `${number(length)} instants`;
  const across = ticks.map((at) => [
    s("line", { class: "grid", x1: LEFT, x2: WIDTH - right, y1: y(at), y2: y(at) }),
    s("text", { class: "tick", x: LEFT - 8, y: y(at) + 4, "text-anchor": "end" }, number(at)),
  ]);
  const along = (isTime ? timeTicks(low, high, 6) : roundTicks(low, high, 6).filter((at) => at <= high)).map((at) => s("text",
    { class: "tick", x: x(at), y: HEIGHT - 8, "text-anchor": "middle" }, isTime ? timeText(at, high - low) : number(at)));
  const stacks = bars.map(([begin, counts]) => {
    let below = 0;
    const said = counts.map((count, place) => (count && groups.length > 1 ? `${groups[place]}: ${number(count)}` : null)).filter(Boolean);
    const when = isTime ? `${timeText(begin, Math.max(length, 5e3))} and ${unit} from there` : `from ${number(begin)}`;
    return s("g", {}, s("title", {}, `${when}: ${number(sum(counts))}${said.length ? `\n${said.join("\n")}` : ""}`),
      counts.map((count, place) => {
        if (count === 0) return null;
        const [from, to] = [y(below), y(below += count)];
        return s("rect", { class: `part ${colour(groups, place)}`, x: x(begin) + 0.5, width: Math.max(1, x(begin + length) - x(begin) - 1), y: to, height: from - to });
      }));
  });
  const legend = groups.length > 1 ? groups.map((group, place) => [
    s("rect", { class: `key ${colour(groups, place)}`, x: WIDTH - right + 12, y: TOP + place * 18, width: 10, height: 10 }),
    s("text", { class: "tick", x: WIDTH - right + 28, y: TOP + 9 + place * 18 }, group.length > 16 ? `${group.slice(0, 15)}…` : group),
  ]) : [];
  const total = bars.reduce((all, [, counts]) => all + sum(counts), 0);
  const label = `Rows of ${name} per ${unit}: ${number(total)} rows, at most ${number(most)}${groups.length > 1 ? `; by ${groups.join(", ")}` : ""}`;
  return { unit, picture: s("svg", { class: "plot", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label }, across, along, stacks, legend) };
}

const colour = (groups, place) => (groups[place] === OTHERS && place === groups.length - 1 && place > 0 ? "c7" : `c${place}`);

/** The figure of a query's or stream's events, with a choice of what they are told apart by. */
export function rateFigure(name, rows, columns, by, kept) {
  const names = groupings(columns);
  const chosen = names.includes(by) ? by : null;
  const found = rates(name, rows, chosen, kept);
  return h("figure", {},
    h("div", { class: "choices" },
      h("span", { class: "faint" }, found === null ? "Rows over time" : `Rows per ${found.unit}`),
      names.length ? h("label", {}, "by ", h("select", { "data-do": "by" }, h("option", { value: "", selected: chosen === null }, "nothing"),
        names.map((one) => h("option", { value: one, selected: one === chosen }, one)))) : null),
    found?.picture ?? h("p", { class: "faint" }, "No row has come yet."));
}
