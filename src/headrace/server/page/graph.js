// The plan graph of everything that runs: operators from the streams to the answers, and what holds back what.

import { h, s, table } from "./dom.js";
import { behind, bytes, count, instant, number, rate } from "./format.js";
import { filterBox, fits, looked } from "./filter.js";
import { layered } from "./layers.js";
import { age, change, state } from "./state.js";

const [WIDTH, HEIGHT, GAP_X, GAP_Y, EDGE] = [204, 80, 40, 16, 12];
const SILENT = 10;
const MANY = 60; // operators
const NAMED = 2; // queries that a cell names; of more it says how many there are
const [SMALLEST, LARGEST, STEP] = [0.1, 2, 1.25];

let scale = 1;
let narrow = null; // whether only the operators of what is chosen are shown; null if nobody has said so: where there are many

/** What is drawn: operators and answers as nodes, who uses each operator, and what holds back. */
function model(status, [kind, name]) {
  const operators = status.operators;
  const users = new Map(operators.map((one) => [one.number, []]));
  const answers = status.queries.filter((query) => query.chain.length > 0).map((query) => {
    const output = query.chain[0].node;
    below(operators, output).forEach((one) => users.get(one)?.push(query.name));
    return { query, output };
  }).filter(({ output }) => users.has(output));
  const silent = new Set(status.streams.filter((stream) => stream.heartbeat !== "end" && age(stream) > SILENT).map((stream) => stream.name));
  const chosen = kind === "query" ? name : null;
  const holding = answers.filter(({ query }) => (chosen === null ? silent.has(query.held_by) : query.name === chosen));
  const held = new Map();
  for (const { query } of holding) {
    const way = [`q ${query.name}`, ...query.chain.map((link) => link.node)];
    way.forEach((id, index) => {
      held.set(id, silent.has(query.held_by) ? "silent" : "held");
      if (index > 0) held.set(`${id}>${way[index - 1]}`, held.get(id));
    });
  }
  const selected = kind === "operator" ? operators.find((one) => one.number === Number(name)) ?? null : null;
  const found = { operators, users, answers, held, chosen, selected, silent };
  return { ...found, used: selected === null ? new Set() : through([selected.number], operators), ...narrowed(found) };
}

/** What is shown: all, or what lies on the ways through what is looked for or chosen. */
function narrowed({ operators, users, answers, chosen, selected }) {
  const isNarrow = narrow ?? operators.length > MANY;
  const byName = answers.filter(({ query }) => (looked("plan") !== "" && fits("plan", query.name)) || (isNarrow && query.name === chosen));
  const numbers = operators.filter((one) => (looked("plan") !== "" && fits("plan", `#${one.number} ${one.text}`)) || (isNarrow && one === selected));
  if (looked("plan") === "" && (!isNarrow || (chosen === null && selected === null))) return { shown: operators, pills: answers };
  const nodes = through(numbers.map((one) => one.number), operators);
  byName.forEach(({ output }) => below(operators, output).forEach((one) => nodes.add(one)));
  const names = new Set(byName.map(({ query }) => query.name));
  numbers.forEach((one) => users.get(one.number).forEach((name) => names.add(name)));
  return { shown: operators.filter((one) => nodes.has(one.number)), pills: answers.filter(({ query }) => names.has(query.name)) };
}

/** The operators on the ways through some: what they read, and what reads them. */
function through(numbers, operators) {
  const found = new Set(numbers);
  operators.forEach((one) => {
    if (one.inputs.some((input) => found.has(input))) found.add(one.number);
  });
  numbers.forEach((one) => below(operators, one).forEach((input) => found.add(input)));
  return found;
}

/** Some names, and of many how many more there are. */
const some = (names, most = NAMED) => (names.length <= most + 1 ? names.join(", ") : `${names.slice(0, most).join(", ")} and ${number(names.length - most)} more`);

function below(operators, output) {
  const found = new Set([output]);
  for (let number_ = output; number_ >= 0; number_ -= 1) {
    if (found.has(number_)) operators[number_]?.inputs.forEach((input) => found.add(input));
  }
  return [...found];
}

export function render(words) {
  const { status } = state;
  if (status === null || status.operators.length === 0) {
    return [h("h1", { tabindex: -1 }, "Plan"), h("p", { class: "faint" }, "No query runs, or the key does not show how they run.")];
  }
  const found = model(status, words);
  return [
    h("div", { class: "heading" }, h("h1", { tabindex: -1 }, "Plan"),
      h("p", { class: "facts" }, `${count(found.operators.length, "operator")}, ${found.operators.filter((one) => found.users.get(one.number).length > 1).length} shared`),
      found.chosen === null ? null : h("a", { class: "button", href: "#/plan" }, `Show all, not only what holds back ${found.chosen}`)),
    h("p", { class: "legend" }, h("span", { class: "swatch held" }), " holds back the query that is chosen; ",
      h("span", { class: "swatch silent" }), ` holds back, and its stream's heartbeat has not moved for ${SILENT} s; `,
      h("span", { class: "swatch shared" }), " is shared by several queries. A query is chosen by its name."),
    h("div", { class: "buttons" },
      filterBox("plan", "Find a query, a stream or an operator"),
      found.chosen === null && found.selected === null ? null
        : h("button", { type: "button", "data-do": "narrow", "aria-pressed": String(narrow ?? found.operators.length > MANY) }, `Only ${found.chosen ?? `#${found.selected.number}`}`),
      h("button", { type: "button", "data-do": "zoom", "data-by": 1 / STEP, "aria-label": "Smaller" }, "−"),
      h("button", { type: "button", "data-do": "zoom", "data-by": STEP, "aria-label": "Larger" }, "+"),
      h("button", { type: "button", "data-do": "fitPlan" }, "Fit"),
      h("small", { class: "faint" }, `${Math.round(100 * scale)} %${found.shown.length < found.operators.length ? `, ${number(found.shown.length)} of ${count(found.operators.length, "operator")}` : ""}`)),
    found.shown.length === 0 ? h("p", {}, "Nothing fits.")
      : h("div", { class: "scroll canvas", id: "canvas", tabindex: 0, role: "region", "aria-label": "The plan as a picture" }, drawing(found)),
    found.selected === null ? null : operator(found.selected, found),
    h("h2", {}, "Operators"), listing(found),
  ];
}

function drawing({ shown, users, pills, held, chosen, selected, used }) {
  const there = new Set(shown.map((one) => one.number));
  const nodes = [...shown.map((one) => ({ id: one.number, inputs: one.inputs.filter((input) => there.has(input)) })),
    ...pills.filter(({ output }) => there.has(output)).map(({ query, output }) => ({ id: `q ${query.name}`, inputs: [output] }))];
  const { at, ways, layers, rows } = layered(nodes);
  const x = (spot) => EDGE + spot.layer * (WIDTH + GAP_X);
  const y = (spot) => EDGE + spot.row * (HEIGHT + GAP_Y);
  const edges = nodes.flatMap((node) => node.inputs.map((input) => {
    const passed = ways.get(`${input}>${node.id}`);
    const spots = [at.get(input), ...passed, at.get(node.id)];
    const isUsed = used.has(input) && (used.has(node.id) || typeof node.id === "string");
    return s("path", { class: `edge ${held.get(`${input}>${node.id}`) ?? ""} ${isUsed ? "used" : ""}`, d: way(spots.map((spot) => ({ x: x(spot), y: y(spot) + HEIGHT / 2 }))) });
  }));
  const boxes = shown.map((one) => box(one, x(at.get(one.number)), y(at.get(one.number)), users.get(one.number), held.get(one.number), one === selected, used.has(one.number)));
  const queries = selected === null ? [] : users.get(selected.number);
  const names = pills.filter(({ output }) => there.has(output)).map(({ query }) => pill(query, x(at.get(`q ${query.name}`)), y(at.get(`q ${query.name}`)), held.get(`q ${query.name}`), query.name === chosen || queries.includes(query.name)));
  const [width, height] = [2 * EDGE + layers * (WIDTH + GAP_X) - GAP_X, 2 * EDGE + rows * (HEIGHT + GAP_Y) - GAP_Y];
  return s("svg", { class: "graph", width: width * scale, height: height * scale, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "Operators, from streams to answers" }, edges, boxes, names);
}

/** A line from the right side of the first place to the left side of the last. */
function way(places) {
  const first = places[0];
  let path = `M${first.x + WIDTH} ${first.y}`;
  places.slice(1).forEach((to, index) => {
    const from = places[index];
    const half = GAP_X / 2;
    path += `C${from.x + WIDTH + half} ${from.y} ${to.x - half} ${to.y} ${to.x} ${to.y}`;
    if (index < places.length - 2) path += `H${to.x + WIDTH}`;
  });
  return path;
}

const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

/** The kind of an operator and the rest of its text. */
function titled(one) {
  const [kind] = one.text.match(/^\w+/) ?? [""];
  return [kind, one.text.slice(kind.length).replace(/^:?\s*/, "")];
}

const flow = (one) => (one.rates === null ? `${number(one.rows_in)} → ${number(one.rows_out)} rows` : `${rate(one.rates[0])} → ${rate(one.rates[1])} rows/s`);

/** An instant in a box, which has no room for words: the end of a window in place of the last instant before it. */
const short = (at) => instant(at).replace(/^just before /, "<");

function box(one, x, y, users, held, isSelected, isUsed) {
  const [kind, rest] = titled(one);
  const kept = one.state_rows ? `keeps ${count(one.state_rows, "row")}` : "keeps nothing";
  const shared = users.length > 1 ? `, shared by ${some(users, 8)}` : "";
  const label = `#${one.number} ${one.text}: ${flow(one)}, ${kept}, heartbeat ${instant(one.heartbeat)}, ${Math.round(100 * one.share)} % of the time${shared}${held ? ", holds back" : ""}`;
  const line = (at, name, text) => s("text", { class: name, x: 12, y: at }, text);
  return s("a", { href: `#/plan/operator/${one.number}`, class: ["box", held, users.length > 1 && "shared", isSelected && "chosen", isUsed && "used"].filter(Boolean).join(" "),
    transform: `translate(${x} ${y})`, "aria-label": label, "data-key": one.number },
  s("title", {}, label),
  users.length > 1 ? s("rect", { class: "back", x: 4, y: 4, width: WIDTH, height: HEIGHT, rx: 5 }) : null,
  s("rect", { class: "face", width: WIDTH, height: HEIGHT, rx: 5 }),
  s("rect", { class: "strip", width: 4, height: HEIGHT, rx: 2 }),
  line(17, "title", `#${one.number} ${kind}`),
  users.length > 1 ? s("text", { class: "badge", x: WIDTH - 10, y: 17, "text-anchor": "end" }, `${users.length} queries`) : null,
  line(33, "rest", cut(rest, 29)),
  line(50, "numbers", `${flow(one)}${one.state_rows ? ` · ${number(one.state_rows)} kept` : ""}`),
  line(66, "numbers", `${short(one.heartbeat)} · ${(100 * one.share).toFixed(0)} % of time`),
  s("rect", { class: "share", x: 4, y: HEIGHT - 4, width: Math.max(0, (WIDTH - 8) * Math.min(1, one.share)), height: 2 }));
}

function pill(query, x, y, held, isChosen) {
  const label = `query ${query.name}, final below ${instant(query.heartbeat)}${query.held_by ? `, held back by ${query.held_by}` : ""}`;
  return s("a", { href: `#/plan/query/${encodeURIComponent(query.name)}`, class: `pill ${held ?? ""} ${isChosen ? "chosen" : ""}`,
    transform: `translate(${x} ${y + HEIGHT / 2 - 21})`, "aria-label": label, "data-key": `q ${query.name}` },
  s("title", {}, label),
  s("rect", { class: "face", width: WIDTH - 20, height: 42, rx: 21 }),
  s("text", { class: "title", x: 18, y: 18 }, cut(query.name, 24)),
  s("text", { class: "numbers", x: 18, y: 33 }, `final below ${short(query.heartbeat)}`));
}

function operator(one, { users }) {
  const pairs = [
    ["Reads", one.inputs.length ? one.inputs.map((input) => h("a", { href: `#/plan/operator/${input}` }, `#${input} `)) : "a stream or a relation"],
    ["For", forQueries(users.get(one.number))],
    ["Rows", `${number(one.rows_in)} in, ${number(one.rows_out)} out`],
    ["State", one.state_rows ? `${count(one.state_rows, "row")}, ${bytes(one.state_bytes)}` : "none"],
    ["Waits", one.waiting_rows ? `${count(one.waiting_rows, "row")} since ${instant(one.waiting_since)}` : "no row"],
    ["Heartbeat", instant(one.heartbeat)],
    ["Newest row", `${instant(one.last)}${behind(one.heartbeat, one.last) ? `, ${behind(one.heartbeat, one.last)} ahead` : ""}`],
    ["Time", `${one.seconds.toFixed(3)} s, ${(100 * one.share).toFixed(0)} %`],
  ];
  return h("section", { class: "panel", "aria-labelledby": "operator-title" },
    h("h2", { id: "operator-title" }, `#${one.number} ${one.text}`),
    h("dl", { class: "pairs" }, pairs.map(([title, text]) => h("div", {}, h("dt", {}, title), h("dd", {}, text)))));
}

function forQueries(names) {
  const links = names.map((name) => h("a", { href: `#/queries/${encodeURIComponent(name)}` }, `${name} `));
  return links.length <= 8 ? links : [links.slice(0, 6), h("details", {}, h("summary", {}, `and ${number(links.length - 6)} more`), links.slice(6))];
}

export const actions = {
  narrow() {
    narrow = !(narrow ?? state.status.operators.length > MANY);
    change();
  },
  zoom({ by }) {
    scale = Math.min(LARGEST, Math.max(SMALLEST, scale * Number(by)));
    change();
  },
  /** Make the whole picture as large as its box. */
  fitPlan() {
    const canvas = document.getElementById("canvas");
    if (canvas === null) return;
    const [width, height] = canvas.firstElementChild.getAttribute("viewBox").split(" ").slice(2).map(Number);
    const room = Math.max(240, 0.62 * window.innerHeight - 8);
    scale = Math.min(1, Math.max(SMALLEST, Math.min((canvas.parentElement.clientWidth - 48) / width, room / height)));
    change();
  },
};

let grabbed = null;
document.addEventListener("pointerdown", (event) => {
  const canvas = event.target.closest?.("#canvas");
  // A finger scrolls the box by itself.
  if (!canvas || event.button !== 0 || event.pointerType !== "mouse" || event.target.closest("a")) return;
  grabbed = { canvas, x: event.clientX + canvas.scrollLeft, y: event.clientY + canvas.scrollTop };
  event.preventDefault();
});
document.addEventListener("pointermove", (event) => {
  if (grabbed !== null) [grabbed.canvas.scrollLeft, grabbed.canvas.scrollTop] = [grabbed.x - event.clientX, grabbed.y - event.clientY];
});
document.addEventListener("pointerup", () => { grabbed = null; });
document.addEventListener("wheel", (event) => {
  if (!event.ctrlKey || !event.target.closest?.("#canvas")) return;
  event.preventDefault();
  actions.zoom({ by: event.deltaY < 0 ? STEP : 1 / STEP });
}, { passive: false });

function listing({ shown, users, held }) {
  const columns = [{ title: "Operator", heads: true }, { title: "Queries" }, { title: "Rows in/s", number: true }, { title: "Rows out/s", number: true },
    { title: "State", number: true }, { title: "Bytes", number: true }, { title: "Time", number: true }, { title: "Heartbeat", number: true }, { title: "Holds back" }];
  const rows = shown.map((one) => [
    h("a", { href: `#/plan/operator/${one.number}` }, `#${one.number} ${one.text}`), some(users.get(one.number)),
    rate(one.rates?.[0]), rate(one.rates?.[1]), one.state_rows ? number(one.state_rows) : "", one.state_rows ? bytes(one.state_bytes) : "",
    `${(100 * one.share).toFixed(0)} %`, instant(one.heartbeat), held.has(one.number) ? h("span", { class: "tag warn" }, "holds back") : "",
  ]);
  return table("Operators", columns, rows, { class: "scroll long" });
}
