// The page: which part is shown, what buttons do, and what is said of the connection.

import * as editor from "./editor.js";
import * as graph from "./graph.js";
import * as letters from "./letters.js";
import * as queries from "./queries.js";
import * as relations from "./relations.js";
import * as sinks from "./sinks.js";
import * as streams from "./streams.js";
import { key } from "./api.js";
import { h, place } from "./dom.js";
import { number } from "./format.js";
import { ask, say, notices, notice } from "./notices.js";
import { change, follow, onChange, state } from "./state.js";

const PARTS = [
  ["queries", "Queries", queries],
  ["plan", "Plan", graph],
  ["streams", "Streams", streams],
  ["relations", "Relations", relations],
  ["sinks", "Sinks", sinks],
  ["letters", "Dead letters", letters],
  ["editor", "Editor", editor],
];
const THEMES = ["system", "light", "dark"];
const MAIN = document.getElementById("main");

/** The words of the address after the #, the first of which is a part of the page. */
function route() {
  const words = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  return PARTS.some(([name]) => name === words[0]) ? words : ["queries"];
}

let shown = null;

function render() {
  const words = route();
  const [name, title, part] = PARTS.find(([one]) => one === words[0]);
  if (shown !== name) {
    shown = name;
    MAIN.replaceChildren();
  }
  document.title = `${words[1] && name !== "plan" ? `${words[1]} · ` : ""}${title} · Headrace`;
  place(document.getElementById("nav"), PARTS.map(([one, text]) => h("a",
    { href: `#/${one}`, "aria-current": one === name ? "page" : null }, text)));
  place(document.getElementById("run"), run());
  place(document.getElementById("tools"), tools());
  place(document.getElementById("notices"), notices());
  place(MAIN, part.render(words.slice(1)));
  MAIN.dataset.part = name;
  part.shown?.(words.slice(1));
}

function run() {
  const { connection, problem, status } = state;
  const texts = { connecting: "connecting", lost: `not connected: ${problem}; trying again`, key: "a key is needed" };
  const text = connection === "connected"
    ? status === null || !status.running ? "at rest" : `running, epoch ${number(status.epoch)}` : texts[connection];
  return [h("span", { class: `dot ${connection}`, "aria-hidden": "true" }), text];
}

function tools() {
  const theme = localStorage.getItem("headrace-theme") ?? "system";
  return [
    key.get() === null ? null : h("button", { type: "button", class: "quiet", "data-do": "forgetKey" }, "Forget the key"),
    h("button", { type: "button", class: "quiet", "data-do": "theme", title: "Switch between the colours of the system, light and dark" }, `Colours: ${theme}`),
  ];
}

function setTheme(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

async function askForKey() {
  const found = await ask({
    title: "A key is needed",
    text: `${state.problem}. The key is kept until this tab is closed.`,
    field: "Key",
    yes: "Use the key",
  });
  if (!found) return;
  key.set(found.trim());
  change({ connection: "connecting", problem: null });
  follow();
}

const own = {
  theme() {
    const theme = THEMES[(THEMES.indexOf(localStorage.getItem("headrace-theme") ?? "system") + 1) % THEMES.length];
    localStorage.setItem("headrace-theme", theme);
    setTheme(theme);
    change();
  },
  forgetKey() {
    key.forget();
    change({ connection: "connecting", problem: null, status: null, queries: [], streams: [], relations: [], sinks: [] });
    follow();
  },
  askForKey,
  skip: () => MAIN.focus(),
  dismiss: ({ id }) => notice.remove(Number(id)),
};

const actions = Object.assign({}, own, ...PARTS.map(([, , part]) => part.actions ?? {}));

document.addEventListener("click", async (event) => {
  const target = event.target.closest("[data-do]");
  if (target === null || target.matches("select")) return;
  event.preventDefault();
  try {
    await actions[target.dataset.do](target.dataset, target);
  } catch (error) {
    say(error);
  }
});
document.addEventListener("change", (event) => {
  if (event.target.matches("select[data-do]")) actions[event.target.dataset.do](event.target.dataset, event.target);
});
window.addEventListener("hashchange", () => {
  const before = shown;
  render();
  // Within the plan the focus stays on the operator that was chosen.
  if (shown !== "plan" || before !== "plan") MAIN.querySelector("h1")?.focus();
});

let asking = false;
onChange(() => {
  render();
  if (state.connection === "key" && !asking) {
    asking = true;
    askForKey().finally(() => { asking = false; });
  }
});

setTheme(localStorage.getItem("headrace-theme") ?? "system");
render();
follow();
// Ages grow while nothing comes from the server.
setInterval(change, 1_000);
