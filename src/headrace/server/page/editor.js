// The editor: statements with completion, their plan or effect beforehand, and errors marked where they are.

import { carryOut, rows } from "./api.js";
import { completion } from "./completion.js";
import { beside, past, tabRow, tabs } from "./desk.js";
import { h, table } from "./dom.js";
import { quoted, value } from "./format.js";
import { ask, say } from "./notices.js";
import { change, refresh } from "./state.js";
import { endOfPiece, explaining, isQuestion, offset, pieces, placed, replaces, selects, statements } from "./sql.js";
import * as trial from "./trial.js";

const TEXT = "headrace-text"; // what another part of the page wants to be opened here
let error = null; // {message, hint, at, end} of the text as it is
let results = () => []; // what was answered, as elements
let pending = null; // the text of statements that wait to be confirmed
let busy = false;

export function render() {
  return [
    h("h1", { tabindex: -1 }, "Editor"),
    h("div", { class: "split desk" }, beside(), h("div", {}, written())),
  ];
}

function written() {
  return [
    tabRow(),
    h("div", { class: "editor", "data-own": "", id: "editor" },
      h("pre", { "aria-hidden": "true", id: "paint" }),
      h("textarea", { id: "text", "aria-label": "Statements", "aria-describedby": "editor-help", "aria-autocomplete": "list",
        spellcheck: "false", autocapitalize: "off", autocomplete: "off", rows: 12 }),
      h("ul", { id: "completions", role: "listbox", "aria-label": "Words that fit", hidden: true })),
    h("div", { class: "buttons" },
      h("button", { type: "button", class: "main", "data-do": "run", disabled: busy }, "Run"),
      h("button", { type: "button", "data-do": "explain", disabled: busy }, "Explain"),
      h("button", { type: "button", "data-do": "ask", disabled: busy }, "Ask once"),
      h("small", { id: "editor-help", class: "faint" }, "Ctrl+Enter runs, Ctrl+Shift+Enter explains, Ctrl+Space completes. Tab takes the word that is offered, and else goes on.")),
    error === null ? null : h("div", { class: "notice bad", role: "alert", id: "editor-error" },
      h("span", { class: "text" }, error.place, error.message, error.hint ? h("div", { class: "hint" }, "hint: ", error.hint) : null),
      error.at === null ? null : h("button", { type: "button", "data-do": "goToError" }, "Go to it")),
    h("div", { role: "status", class: "results" }, results()),
    trial.answer(),
    pending === null ? null : h("div", { class: "buttons" },
      h("button", { type: "button", class: "main", "data-do": "confirm" }, "Replace"),
      h("button", { type: "button", "data-do": "cancel" }, "Keep the old one")),
  ];
}

/** The text area has a life of its own, and is set up once. */
export function shown([is]) {
  const area = document.getElementById("text");
  if (area.dataset.ready && is !== "new") return;
  if (is === "new") {
    history.replaceState(null, "", "#/editor");
    forget();
  }
  const wanted = sessionStorage.getItem(TEXT);
  sessionStorage.removeItem(TEXT);
  if (wanted !== null) tabs.open(wanted);
  area.value = tabs.text;
  paint();
  if (area.dataset.ready) return;
  area.dataset.ready = "yes";
  const offered = completion(area, document.getElementById("completions"), paint);
  area.addEventListener("input", () => {
    tabs.text = area.value;
    if (error !== null || pending !== null) forget();
    paint();
  });
  area.addEventListener("scroll", follow);
  area.addEventListener("keydown", (event) => {
    if (offered.key(event)) return;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      offered.close();
      (event.shiftKey ? actions.explain : actions.run)().catch(say);
    }
  });
}

/** Leave a text for another one. */
function turn(move) {
  move();
  document.getElementById("text").value = tabs.text;
  forget();
  paint();
}

/** Put a text in place of the one that is there. */
function write(text) {
  document.getElementById("text").value = text;
  tabs.text = text;
  forget();
  paint();
}

window.addEventListener("hashchange", () => {
  if (!location.hash.startsWith("#/editor")) trial.stop().catch(() => {});
});
// What a reload has left.
trial.stop().catch(() => {});

function forget() {
  [error, pending, results] = [null, null, () => []];
  change();
}

function follow() {
  const [area, pre] = [document.getElementById("text"), document.getElementById("paint")];
  [pre.scrollTop, pre.scrollLeft] = [area.scrollTop, area.scrollLeft];
}

/** The text in colours behind the text area, with the place of the error marked. */
function paint() {
  const [area, pre] = [document.getElementById("text"), document.getElementById("paint")];
  if (area === null) return;
  const text = area.value;
  const found = [];
  let at = 0;
  for (const piece of [...pieces(text), { kind: "blank", text: "", start: text.length, end: text.length }]) {
    if (error?.at >= at && error.at < piece.start) found.push(text.slice(at, error.at), h("mark", {}, text.slice(error.at, piece.start)));
    else found.push(text.slice(at, piece.start));
    const isWrong = error !== null && error.at !== null && error.at >= piece.start && error.at < piece.end;
    found.push(h(isWrong ? "mark" : "span", { class: piece.kind }, piece.text));
    at = piece.end;
  }
  if (error?.at === text.length) found.push(h("mark", {}, " "));
  pre.replaceChildren(...found, "\n");
  area.setAttribute("aria-invalid", String(error !== null));
  follow();
}

/** Show an error where it is. */
function fail(found, text, linesBefore = 0) {
  const at = found.line ? offset(text, found.line - linesBefore, found.column) : null;
  const where = at === null ? "" : `line ${found.line - linesBefore}, column ${found.column}: `;
  error = { message: found.message, hint: found.hint, at, end: at === null ? null : endOfPiece(text, at), place: where };
}

async function work(job) {
  if (busy) return;
  const text = document.getElementById("text").value;
  [busy, error, pending, results] = [true, null, null, () => []];
  change();
  try {
    await job(text);
  } finally {
    busy = false;
    paint();
    change();
  }
}

/** Carry a text out; one whose error's lines are counted from a few lines earlier. */
async function attempt(sent, text, linesBefore = 0) {
  try {
    return await carryOut(sent);
  } catch (found) {
    if (!found.kind) throw found;
    fail(found, text, linesBefore);
    return null;
  }
}

/** Carry statements out in their order; a SELECT shows its rows, and defines nothing. */
async function run(text) {
  past.add(text);
  await trial.stop();
  const done = [];
  results = () => done.map((one) => one());
  const all = statements(text);
  for (const [index, statement] of all.entries()) {
    const at = placed(text, statement);
    if (selects(statement) && isQuestion(statement)) done.push(await question(at, text));
    else if (selects(statement)) {
      const isShown = all.slice(index + 1).every((later) => !selects(later) || isQuestion(later));
      if (isShown) await trial.look(at, (sent) => attempt(sent, text, 1));
      else done.push(() => h("p", { class: "notice warn" }, `Not shown: ${statement.text.slice(0, 60)}. Of several SELECTs the last one is.`));
    } else {
      const found = await attempt(at, text);
      if (found !== null) done.push(() => told(found));
    }
    if (error !== null) break;
  }
  await refresh();
}

function told(found) {
  return found.map((one) => {
    if (one.kind === "query") return h("p", { class: "notice good" }, "The query ", h("a", { href: `#/queries/${encodeURIComponent(one.name)}` }, one.name), " is defined.");
    return one.kind === "text" ? h("pre", { tabindex: 0 }, one.text) : h("p", { class: "notice good" }, "Done.");
  });
}

/** What shows the answer of a question that is asked once. */
async function question(sent, text) {
  try {
    const found = await rows("/ask", { sql: sent });
    const names = Object.keys(found[0] ?? {});
    const cells = found.slice(0, 500).map((row) => names.map((name) => value(row[name])));
    const columns = names.map((name) => ({ title: name, number: typeof found[0][name] === "number" }));
    return () => (found.length ? table("The answer", columns, cells) : h("p", {}, "No row."));
  } catch (wrong) {
    if (!wrong.kind) throw wrong;
    fail(wrong, text);
    return () => null;
  }
}

/** What statements would do: plans, and the effect of replacing. False where there is nothing to show. */
async function explain(text, which) {
  const texts = [];
  for (const statement of which) {
    const sent = explaining(text, statement);
    if (sent === null) continue;
    const found = await attempt(sent, text, 1);
    if (found === null) return false;
    texts.push(found[0].text);
  }
  results = () => texts.map((one) => h("pre", { tabindex: 0 }, one));
  return texts.length > 0;
}

export const actions = {
  run: () => work(async (text) => {
    const replacing = statements(text).filter(replaces);
    if (replacing.length === 0) return run(text);
    if (await explain(text, replacing)) pending = text;
    return undefined;
  }),
  explain: () => work(async (text) => {
    if (!(await explain(text, statements(text))) && error === null) results = () => [h("p", {}, "There is no plan to show: queries and SELECTs have one.")];
  }),
  ask: () => work(async (text) => {
    past.add(text);
    const shown = await question(text, text);
    results = () => [shown()];
  }),
  /** Make a definition of the SELECT; it is carried out when its user runs it. */
  async define() {
    const area = document.getElementById("text");
    const last = statements(area.value).findLast((one) => selects(one) && !isQuestion(one));
    const name = await ask({ title: "Define as a query", text: "It is answered from then on, for everybody, until it is dropped.", field: "Name", isShown: true, yes: "Write the statement" });
    if (!name || last === undefined) return;
    await trial.stop();
    write(`${area.value.slice(0, last.start)}CREATE QUERY ${quoted(name.trim())} AS\n${area.value.slice(last.start)}`);
  },
  async endLook() {
    await trial.stop();
    change();
  },
  insertName({ name }) {
    const area = document.getElementById("text");
    area.focus();
    area.setRangeText(name, area.selectionStart, area.selectionEnd, "end");
    area.dispatchEvent(new Event("input", { bubbles: true }));
  },
  chooseTab: ({ index }) => turn(() => tabs.choose(Number(index))),
  closeTab: ({ index }) => turn(() => tabs.close(Number(index))),
  openTab: () => turn(() => tabs.open("")),
  openPast: ({ index }) => turn(() => tabs.open(past.all[Number(index)])),
  forgetPast() {
    past.forget();
    change();
  },
  confirm: () => {
    const text = pending;
    return work(() => run(text));
  },
  cancel: forget,
  goToError: () => {
    const area = document.getElementById("text");
    area.focus();
    area.setSelectionRange(error.at, error.end);
  },
};
