// What is said once, below the header, and what is asked in a dialog.

import { h } from "./dom.js";
import { change, state } from "./state.js";

let all = [];
let next = 1;

export const notice = {
  remove(id) {
    all = all.filter((one) => one.id !== id);
    change();
  },
};

// What has happened on one part of the page is no news on another.
window.addEventListener("hashchange", () => {
  all = all.filter((one) => one.isError || performance.now() - one.at < 1_000);
  change();
});

/** Say something that has happened: a text, or an error. */
export function say(found) {
  const isError = found instanceof Error;
  const text = isError && found.hint ? `${found.message} (hint: ${found.hint})` : found.message ?? found;
  all = [...all.slice(-2), { id: next, text, isError, at: performance.now() }];
  next += 1;
  change();
}

/** The notices, and what is wrong with the run. */
export function notices() {
  const problems = Object.entries(state.status?.problems ?? {});
  return [
    state.connection === "key"
      ? h("div", { class: "notice bad", "data-key": "key" }, h("span", {}, "The server needs a key."),
        h("button", { type: "button", "data-do": "askForKey" }, "Enter a key"))
      : null,
    problems.map(([name, text]) => h("div", { class: "notice bad", role: "alert", "data-key": `problem ${name}` }, `${name}: ${text}`)),
    all.map(({ id, text, isError }) => h("div", { class: `notice ${isError ? "bad" : "good"}`, role: isError ? "alert" : "status", "data-key": id },
      h("span", { class: "text" }, text),
      h("button", { type: "button", class: "quiet", "data-do": "dismiss", "data-id": id, "aria-label": "Dismiss" }, "×"))),
  ];
}

/** Ask with a dialog; what was entered, true where nothing is to be entered, null where it was left. */
export function ask({ title, text, yes, field = null, isShown = false, danger = false }) {
  const dialog = document.getElementById("dialog");
  const form = h("form", { method: "dialog" },
    h("h2", { id: "dialog-title" }, title), h("p", {}, text),
    field ? h("label", {}, field, h("input", { type: isShown ? "text" : "password", name: "found", autocomplete: "off", required: true })) : null,
    h("div", { class: "buttons" },
      h("button", { type: "button", name: "no" }, "Cancel"),
      h("button", { type: "submit", class: danger ? "danger" : "main" }, yes)));
  dialog.replaceChildren(form);
  dialog.showModal();
  return new Promise((resolve) => {
    const end = (found) => {
      dialog.oncancel = null;
      dialog.close();
      resolve(found);
    };
    form.onsubmit = (event) => {
      event.preventDefault();
      end(field ? form.elements.found.value : true);
    };
    form.elements.no.onclick = () => end(null);
    dialog.oncancel = () => end(null);
  });
}
