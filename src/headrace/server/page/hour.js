// The numbers of the last hour in small pictures, which the server keeps: also what was before the page was opened.

import { get } from "./api.js";
import { h, s } from "./dom.js";
import { bytes, rate, seconds } from "./format.js";
import { change, state } from "./state.js";

const EVERY = 10_000;
const [WIDTH, HEIGHT] = [240, 44];
const TITLES = 90;

let known = null;
let asked = -Infinity;

/** The numbers that are known; they are asked for again while something shows them. */
function hour() {
  if (state.connection === "connected" && performance.now() - asked > EVERY) {
    asked = performance.now();
    get("/status/hour").then((found) => {
      known = found;
      change();
    }, () => {});
  }
  return known;
}

/** A line over the last hour with its last and its largest value; nothing where no value is known. */
export function small(title, at, values, shown) {
  const found = values.map((value, place) => ({ value, place })).filter(({ value }) => value !== null);
  if (found.length < 2) return null;
  const most = found.reduce((a, { value }) => Math.max(a, value), 0);
  const x = (place) => (place / (values.length - 1)) * WIDTH;
  const y = (value) => HEIGHT - 2 - (most ? value / most : 0) * (HEIGHT - 6);
  let path = "";
  found.forEach(({ value, place }, index) => {
    path += `${index && found[index - 1].place === place - 1 ? "L" : "M"}${x(place).toFixed(1)} ${y(value).toFixed(1)}`;
  });
  const step = Math.max(1, Math.ceil(values.length / TITLES));
  const titled = found.filter(({ place }) => place % step === 0).map(({ value, place }) => s("rect",
    { class: "over", x: x(place - step / 2), y: 0, width: x(step), height: HEIGHT }, s("title", {}, `${at[place].slice(11, 19)}: ${shown(value)}`)));
  const last = found[found.length - 1].value;
  const span = minutes(at);
  return h("figure", { class: "small" },
    h("figcaption", {}, title, " ", h("b", {}, shown(last)), h("small", {}, ` at most ${shown(most)}`)),
    s("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": `${title} over the last ${span}: now ${shown(last)}, at most ${shown(most)}` },
      s("line", { class: "grid", x1: 0, x2: WIDTH, y1: HEIGHT - 2, y2: HEIGHT - 2 }), s("path", { class: "series c0", d: path }), titled));
}

const minutes = (at) => {
  const found = Math.round((Date.parse(at[at.length - 1]) - Date.parse(at[0])) / 6e4);
  return found < 1 ? "minute" : found === 1 ? "minute" : `${found} minutes`;
};

const perSecond = (found) => `${rate(found)}/s`;

/** Rows, lag, work and memory of all that runs. */
export function wholeHour() {
  const found = hour();
  if (found === null || found.at.length < 2) {
    return h("p", { class: "faint" }, found === null ? "" : "The rates of the last hour are shown from half a minute after the start on.");
  }
  return h("div", { class: "smalls" },
    small("Rows", found.at, found.rows, perSecond), small("Largest lag", found.at, found.lag, seconds),
    small("Work per epoch", found.at, found.epoch, seconds), small("Memory", found.at, found.memory, bytes));
}

/** The rates of one query, or of streams and of what they give. */
export function hourOf(...parts) {
  const found = hour();
  const pictures = found === null ? [] : parts.map(([title, part, name]) => {
    const values = found[part][name];
    return values === undefined ? null : small(title, found.at, values, perSecond);
  }).filter((one) => one !== null);
  return pictures.length ? h("div", { class: "smalls" }, pictures) : null;
}
