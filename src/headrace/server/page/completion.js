// Words that are offered while a statement is written; the server knows which ones fit.

import { post } from "./api.js";
import { h } from "./dom.js";

const SHOWN = 12;

/** Offer words in a list while a text area is written in; `key` takes a key if it is for the list. */
export function completion(area, list, changed) {
  let [found, chosen, asked] = [null, 0, 0];

  const close = () => {
    asked += 1;
    found = null;
    list.hidden = true;
    area.removeAttribute("aria-activedescendant");
  };

  const draw = () => {
    list.replaceChildren(...found.candidates.map((one, index) => h("li",
      { role: "option", id: `completion-${index}`, "aria-selected": String(index === chosen), "data-index": index }, one.text, " ", h("small", {}, one.what))));
    const { x, y } = placeOf(area, found.start);
    list.style.setProperty("left", `${x}px`);
    list.style.setProperty("top", `${y}px`);
    list.hidden = false;
    area.setAttribute("aria-controls", list.id);
    area.setAttribute("aria-activedescendant", `completion-${chosen}`);
    list.children[chosen].scrollIntoView({ block: "nearest" });
  };

  const take = (index) => {
    const word = found.candidates[index].text;
    const end = area.selectionEnd;
    area.setRangeText(word, found.start, end, "end");
    close();
    area.dispatchEvent(new Event("input", { bubbles: true }));
    close();
    changed();
  };

  const look = async (always) => {
    const [text, at] = [area.value, area.selectionStart];
    asked += 1;
    const mine = asked;
    if (!always && !/[\w.`]$/.test(text.slice(0, at))) return close();
    try {
      const answer = await post("/completions", { text, at: [...text.slice(0, at)].length });
      if (mine !== asked) return undefined;
      const start = [...text].slice(0, answer.start).join("").length;
      const written = text.slice(start, at).toLowerCase();
      const candidates = answer.candidates.filter((one) => one.text.toLowerCase() !== written).slice(0, SHOWN);
      if (candidates.length === 0) return close();
      found = { start, candidates };
      chosen = 0;
      draw();
    } catch {
      close();
    }
    return undefined;
  };

  area.addEventListener("input", (event) => { if (event.isTrusted) look(false); });
  area.addEventListener("blur", close);
  area.addEventListener("click", close);
  list.addEventListener("mousedown", (event) => {
    event.preventDefault();
    const item = event.target.closest("[data-index]");
    if (item !== null) take(Number(item.dataset.index));
  });

  const moves = { ArrowDown: 1, ArrowUp: -1 };
  return {
    close,
    key(event) {
      if (event.ctrlKey && event.code === "Space") {
        event.preventDefault();
        look(true);
        return true;
      }
      if (found === null || event.ctrlKey || event.metaKey) return false;
      if (event.key in moves) {
        chosen = (chosen + moves[event.key] + found.candidates.length) % found.candidates.length;
        draw();
      } else if (event.key === "Tab" && !event.shiftKey) take(chosen);
      else if (event.key === "Escape") close();
      else {
        if (event.key.startsWith("Arrow") || event.key === "Enter") close();
        return false;
      }
      event.preventDefault();
      return true;
    },
  };
}

/** Where a character of a text area is, below its line (pixels in the area's box). */
function placeOf(area, at) {
  const lines = area.value.slice(0, at).split("\n");
  const style = getComputedStyle(area);
  const line = Number.parseFloat(style.lineHeight);
  const canvas = new OffscreenCanvas(1, 1).getContext("2d");
  canvas.font = style.font;
  const x = canvas.measureText(lines[lines.length - 1]).width + Number.parseFloat(style.paddingLeft) - area.scrollLeft;
  const y = lines.length * line + Number.parseFloat(style.paddingTop) - area.scrollTop;
  return { x: Math.max(0, Math.min(x, area.clientWidth - 200)), y: y + 2 };
}
