// Pictures of answers with many groups: squares of colour for pairs of groups, and a small picture of each group.

import { s } from "./dom.js";
import { number, position, value } from "./format.js";
import { cut, labelText, pathOf, roundTicks, seriesOf, WIDTH } from "./plots.js";

const GROUPS = 30;
const SMALL = 24;
const ACROSS = 4;

/** The different texts of a column, in order: at most so many, and how many there are. */
function groupsOf(rows, name) {
  const found = [...new Set(rows.map((row) => labelText(row[name])))].sort();
  return { all: found.length, shown: found.slice(0, GROUPS) };
}

/** A square for each pair of groups, the darker the farther its value is from 0; null where there is nothing to draw. */
export function squares(name, rows, labels, measure) {
  const known = rows.filter((row) => Number.isFinite(Number(row[measure])) && row[measure] !== null);
  if (known.length === 0) return null;
  const [down, across] = labels.map((label) => groupsOf(known, label));
  const most = known.reduce((found, row) => Math.max(found, Math.abs(Number(row[measure]))), 1e-300);
  const longest = (texts) => texts.reduce((found, text) => Math.max(found, Math.min(24, text.length)), 0);
  const left = 24 + 6.5 * longest(down.shown);
  const size = Math.max(12, Math.min(28, (WIDTH - left) / across.shown.length));
  const bottom = down.shown.length * size + 8;
  const [rowOf, columnOf] = [down, across].map(({ shown }) => new Map(shown.map((text, place) => [text, place])));
  const drawn = known.flatMap((row) => {
    const [one, other] = labels.map((label) => labelText(row[label]));
    if (!rowOf.has(one) || !columnOf.has(other)) return [];
    const far = Number(row[measure]);
    return [s("rect", {
      class: far < 0 ? "square below" : "square", x: left + columnOf.get(other) * size, y: 4 + rowOf.get(one) * size,
      width: size - 1, height: size - 1, "fill-opacity": (0.08 + 0.92 * Math.abs(far) / most).toFixed(2),
    }, s("title", {}, `${one} · ${other}: ${value(row[measure])}`))];
  });
  const names = down.shown.map((text, place) => s("text",
    { class: "tick", x: left - 8, y: 4 + place * size + size / 2 + 4, "text-anchor": "end" }, cut(text, 24)));
  const turned = across.shown.map((text, place) => {
    const x = left + place * size + size / 2 + 4;
    return s("text", { class: "tick", x, y: bottom, "text-anchor": "end", transform: `rotate(-90 ${x} ${bottom})` }, cut(text, 24));
  });
  const more = down.all + across.all - down.shown.length - across.shown.length;
  const height = bottom + 12 + 6.5 * longest(across.shown);
  const label = `${measure} of ${name} for ${number(known.length)} pairs of ${labels.join(" and ")}, from ${
    number(known.reduce((found, row) => Math.min(found, Number(row[measure])), Infinity))} to ${
    number(known.reduce((found, row) => Math.max(found, Number(row[measure])), -Infinity))}${
    more ? `; ${number(more)} groups are not drawn` : ""}`;
  return s("svg", { class: "plot", viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": label }, drawn, names, turned);
}

/** A small picture of each group's values over time, all with the same axes; null where there is nothing to draw. */
export function multiples(name, rows, labels, measure, until) {
  const begins = rows.map((row) => position(row.valid_from)).filter((at) => at !== null);
  if (begins.length === 0) return null;
  const known = rows.flatMap((row) => [position(row.valid_from), position(row.valid_to)]).filter((at) => at !== null);
  const end = position(until) ?? known.reduce((a, b) => Math.max(a, b));
  const { all, shown } = seriesOf(rows, labels, measure, end, SMALL);
  if (shown.length === 0) return null;
  const pieces = shown.flatMap(([, found]) => found);
  const low = pieces.reduce((a, piece) => Math.min(a, piece.from), Infinity);
  const high = Math.max(pieces.reduce((a, piece) => Math.max(a, piece.to), -Infinity), low + 1);
  const smallest = pieces.reduce((a, piece) => Math.min(a, piece.y), Infinity);
  const ticks = roundTicks(smallest, pieces.reduce((a, piece) => Math.max(a, piece.y), smallest + 1e-9), 2);
  const largest = Math.max(ticks[ticks.length - 1], smallest + 1e-9);
  const [width, height] = [WIDTH / ACROSS, 96];
  const drawn = shown.map(([label, found], place) => {
    const [left, top] = [(place % ACROSS) * width, Math.floor(place / ACROSS) * height];
    const x = (at) => left + 8 + ((at - low) / (high - low)) * (width - 24);
    const y = (at) => top + height - 10 - ((at - smallest) / (largest - smallest)) * (height - 34);
    return [
      s("text", { class: "tick", x: left + 8, y: top + 14 }, s("title", {}, label), cut(label || measure, 26)),
      s("line", { class: "grid", x1: left + 8, x2: left + width - 16, y1: y(smallest), y2: y(smallest) }),
      s("path", { class: "series c0", d: pathOf(found, x, y) },
        s("title", {}, `${label || measure}: ${number(found[found.length - 1].y)} at the end`)),
    ];
  });
  const label = `${measure} of ${name} over time, each of ${number(all)} groups by itself, between ${number(smallest)} and ${
    number(largest)}${all > shown.length ? `; the first ${number(shown.length)} are drawn` : ""}`;
  const tall = Math.ceil(shown.length / ACROSS) * height;
  return s("svg", { class: "plot", viewBox: `0 0 ${WIDTH} ${tall}`, role: "img", "aria-label": label }, drawn);
}
