// Pictures of answers: steps over time, and bars by group. Which one fits is chosen by the types of the columns.

import { s } from "./dom.js";
import { isNumeric, number, position, value } from "./format.js";

const SERIES = 8;
const BARS = 12;
const LEFT = 64;
export const WIDTH = 860;

/** The bounds of an estimate, which are columns beside it; null where there are none. */
function boundsOf(names, measure) {
  const bounds = [`${measure}_low`, `${measure}_high`];
  return bounds.every((name) => names.includes(name)) ? bounds : null;
}

/** How an answer can be drawn: its measures, and its label columns where it has groups. */
export function drawable(columns, rows) {
  const names = columns.map((column) => column.name);
  const bounds = new Set(names.flatMap((name) => boundsOf(names, name) ?? []));
  const numeric = columns.filter((column) => isNumeric(column.type) && !bounds.has(column.name)).map((column) => column.name);
  let labels = columns.filter((column) => !isNumeric(column.type)).map((column) => column.name);
  let measures = numeric;
  if (labels.length === 0 && numeric.length > 1 && rows.length > 1) {
    // Of several numbers in several rows, the first is what the rows are about.
    labels = [numeric[0]];
    measures = numeric.slice(1);
  }
  const form = labels.length > 0 && rows.length > 1 ? "bars" : "steps";
  return { measures, labels, form };
}

/** A group's values; numbers that are names, such as ids, have no commas. */
export const labelText = (found) => (typeof found === "number" || typeof found === "bigint" ? String(found) : value(found));

const labelOf = (row, labels) => labels.map((name) => labelText(row[name])).join(" · ");

/** About `count` round numbers from the first between two numbers on, the last one not below the upper. */
export function roundTicks(low, high, count) {
  const rough = (high - low || 1) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  const found = [];
  for (let at = Math.ceil(low / step) * step; at < high + step * (1 - 1e-6); at += step) found.push(Number(at.toPrecision(12)));
  return found;
}

const TIME_STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 9e5, 18e5, 36e5,
  72e5, 216e5, 432e5, 864e5];

export function timeTicks(low, high, count) {
  const rough = (high - low) / count;
  const step = TIME_STEPS.find((one) => one >= rough) ?? 864e5 * Math.ceil(rough / 864e5);
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high; at += step) found.push(at);
  return found;
}

export function timeText(at, span) {
  const iso = new Date(at).toISOString();
  if (span > 2 * 864e5) return iso.slice(5, 10);
  return iso.slice(11, span < 5e3 ? 23 : 19);
}

/** Rows of a history as series of horizontal pieces, those with the newest values first. */
export function seriesOf(rows, labels, measure, end, most = SERIES) {
  const found = new Map();
  const bounds = rows.length > 0 ? boundsOf(Object.keys(rows[0]), measure) : null;
  for (const row of rows) {
    const from = position(row.valid_from);
    if (from === null || row[measure] === null || row[measure] === undefined) continue;
    const to = position(row.valid_to) ?? end;
    const label = labelOf(row, labels);
    if (!found.has(label)) found.set(label, []);
    const [low, high] = (bounds ?? []).map((name) => (row[name] === null ? null : Number(row[name])));
    found.get(label).push({ from, to: Math.min(to, Math.max(end, from)), y: Number(row[measure]), low, high });
  }
  for (const pieces of found.values()) pieces.sort((a, b) => a.from - b.from);
  const last = ([, pieces]) => pieces[pieces.length - 1];
  const sorted = [...found].sort((a, b) => last(b).to - last(a).to || last(b).y - last(a).y);
  return { all: sorted.length, shown: sorted.slice(0, most) };
}

export function pathOf(pieces, x, y) {
  let path = "";
  let before = null;
  for (const piece of pieces) {
    const start = x(piece.from).toFixed(1);
    path += before !== null && before.to === piece.from
      ? `V${y(piece.y).toFixed(1)}` : `M${start} ${y(piece.y).toFixed(1)}`;
    path += `H${Math.max(x(piece.to), x(piece.from) + 1).toFixed(1)}`;
    before = piece;
  }
  return path;
}

const isBounded = (piece) => Number.isFinite(piece.low) && Number.isFinite(piece.high);

/** The area between bounds, a rectangle for each piece that has any. */
function bandOf(pieces, x, y) {
  return pieces.filter(isBounded).map((piece) => {
    const [left, right] = [x(piece.from).toFixed(1), Math.max(x(piece.to), x(piece.from) + 1).toFixed(1)];
    return `M${left} ${y(piece.low).toFixed(1)}H${right}V${y(piece.high).toFixed(1)}H${left}Z`;
  }).join("");
}

/** A step plot of a measure over the time of the answer; null where there is nothing to draw. */
export function steps(name, rows, labels, measure, until) {
  const known = rows.flatMap((row) => [position(row.valid_from), position(row.valid_to)]).filter((at) => at !== null);
  const begins = rows.map((row) => position(row.valid_from)).filter((at) => at !== null);
  if (begins.length === 0) return null;
  const end = position(until) ?? known.reduce((a, b) => Math.max(a, b));
  const { all, shown } = seriesOf(rows, labels, measure, end);
  if (shown.length === 0) return null;
  const pieces = shown.flatMap(([, found]) => found);
  const low = pieces.reduce((a, piece) => Math.min(a, piece.from), Infinity);
  const high = Math.max(pieces.reduce((a, piece) => Math.max(a, piece.to), -Infinity), low + 1);
  const isTime = typeof rows[0].valid_from === "string";
  return frame(name, measure, { all, shown, pieces, low, high, isTime });
}

let coloured = { name: null, colours: new Map() };

/** The colour of each group by its label: a group keeps its own for as long as it is shown. */
function coloursOf(name, labels) {
  const before = coloured.name === name ? coloured.colours : new Map();
  const kept = new Map(labels.filter((label) => before.has(label)).map((label) => [label, before.get(label)]));
  const taken = new Set(kept.values());
  const free = [...Array(SERIES).keys()].filter((colour) => !taken.has(colour));
  const colours = new Map(labels.map((label) => [label, kept.get(label) ?? free.shift()]));
  coloured = { name, colours };
  return colours;
}

function frame(name, measure, { all, shown, pieces, low, high, isTime }) {
  const [height, top, right] = [220, 12, shown.length > 1 ? 150 : 16];
  const bottom = height - 26;
  const values = pieces.flatMap((piece) => (isBounded(piece) ? [piece.y, piece.low, piece.high] : [piece.y]));
  const smallest = Math.min(0, values.reduce((a, b) => Math.min(a, b)));
  const ticks = roundTicks(smallest, Math.max(values.reduce((a, b) => Math.max(a, b)), smallest + 1e-9, 0), 4);
  const largest = ticks[ticks.length - 1];
  const x = (at) => LEFT + ((at - low) / (high - low)) * (WIDTH - LEFT - right);
  const y = (at) => bottom - ((at - smallest) / (largest - smallest)) * (bottom - top);
  const across = ticks.map((at) => [
    s("line", { class: "grid", x1: LEFT, x2: WIDTH - right, y1: y(at), y2: y(at) }),
    s("text", { class: "tick", x: LEFT - 8, y: y(at) + 4, "text-anchor": "end" }, number(at)),
  ]);
  const along = (isTime ? timeTicks(low, high, 6) : roundTicks(low, high, 6).filter((at) => at <= high)).map((at) => s("text",
    { class: "tick", x: x(at), y: height - 8, "text-anchor": "middle" }, isTime ? timeText(at, high - low) : number(at)));
  const colours = coloursOf(name, shown.map(([label]) => label));
  const lines = shown.map(([label, found]) => s("path", { class: `series c${colours.get(label)}`, d: pathOf(found, x, y) },
    s("title", {}, `${label || measure}: ${number(found[found.length - 1].y)} at the end`)));
  const bands = shown.filter(([, found]) => found.some(isBounded)).map(([label, found]) => s("path",
    { class: `band c${colours.get(label)}`, d: bandOf(found, x, y) }));
  const legend = shown.length > 1 ? shown.map(([label], index) => [
    s("rect", { class: `key c${colours.get(label)}`, x: WIDTH - right + 12, y: top + index * 18, width: 10, height: 10 }),
    s("text", { class: "tick", x: WIDTH - right + 28, y: top + 9 + index * 18 }, cut(label, 16)),
  ]) : [];
  if (all > shown.length) {
    legend.push(s("text", { class: "tick", x: WIDTH - right + 28, y: top + 9 + shown.length * 18 }, `and ${number(all - shown.length)} more`));
  }
  const last = shown[0][1][shown[0][1].length - 1];
  const label = `${measure} of ${name} over time, between ${number(smallest)} and ${number(largest)}; ${
    shown.length > 1 ? `${number(all)} groups` : `now ${number(last.y)}`}${
    shown.length === 1 && isBounded(last) ? `, from ${number(last.low)} to ${number(last.high)}` : ""}`;
  return s("svg", { class: "plot", viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": label }, across, along, bands, lines, legend);
}

export const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

/** Bars of a measure by group, the longest first; null where there is nothing to draw. */
export function bars(name, rows, labels, measure) {
  const found = rows.filter((row) => row[measure] !== null && row[measure] !== undefined)
    .map((row) => ({ label: labelOf(row, labels) || measure, y: Number(row[measure]), text: value(row[measure]) }))
    .sort((a, b) => b.y - a.y);
  if (found.length === 0) return null;
  const shown = found.slice(0, BARS);
  const longest = shown.reduce((most, bar) => Math.max(most, Math.min(24, bar.label.length)), 0);
  const [line, left, right] = [20, 24 + 6.5 * longest, 110];
  const more = found.length > shown.length ? 1 : 0;
  const height = (shown.length + more) * line + 8;
  const smallest = Math.min(0, ...shown.map((bar) => bar.y));
  const largest = Math.max(0, ...shown.map((bar) => bar.y), smallest + 1e-9);
  const x = (at) => left + ((at - smallest) / (largest - smallest)) * (WIDTH - left - right);
  const drawn = shown.map((bar, index) => [
    s("text", { class: "tick", x: left - 8, y: index * line + 17, "text-anchor": "end" }, s("title", {}, bar.label), cut(bar.label, 24)),
    s("rect", { class: "bar", x: Math.min(x(0), x(bar.y)), y: index * line + 6, width: Math.max(1, Math.abs(x(bar.y) - x(0))), height: line - 6 }),
    s("text", { class: "bar-value", x: Math.max(x(0), x(bar.y)) + 6, y: index * line + 17 }, bar.text),
  ]);
  if (more) drawn.push(s("text", { class: "tick", x: left, y: height - 6 }, `and ${number(found.length - shown.length)} more`));
  const label = `${measure} of ${name} by group: ${shown.slice(0, 5).map((bar) => `${bar.label} ${bar.text}`).join(", ")}`;
  return s("svg", { class: "plot", viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": label }, drawn);
}
