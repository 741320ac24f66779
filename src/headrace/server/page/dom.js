// Elements from descriptions, and a view's new elements put in place of its old ones without losing focus.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element: its tag, its attributes (absent where null or false), its children. */
export function h(tag, attributes = {}, ...children) {
  return build(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function s(tag, attributes = {}, ...children) {
  return build(document.createElementNS(SVG, tag), attributes, children);
}

function build(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Make the children of an element those of a list, changing only what differs. */
export function place(element, children) {
  const wanted = [children].flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : document.createTextNode(String(child))));
  wanted.forEach((next, index) => {
    const old = element.childNodes[index];
    if (!old) element.append(next);
    else if (!same(old, next)) old.replaceWith(next);
    else update(old, next);
  });
  while (element.childNodes.length > wanted.length) element.lastChild.remove();
}

function same(old, next) {
  return old.nodeType === next.nodeType && old.nodeName === next.nodeName
    && (old.nodeType !== Node.ELEMENT_NODE || old.getAttribute("data-key") === next.getAttribute("data-key"));
}

function update(old, next) {
  if (old === next) return;
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== next.data) old.data = next.data;
    return;
  }
  // What has a life of its own is left to it.
  if (old.hasAttribute("data-own")) return;
  // Whether it is open is its user's.
  const kept = old.nodeName === "DETAILS" ? ["open"] : [];
  for (const { name } of [...old.attributes]) {
    if (!next.hasAttribute(name) && !kept.includes(name)) old.removeAttribute(name);
  }
  for (const { name, value } of [...next.attributes]) {
    if (old.getAttribute(name) !== value && !kept.includes(name)) old.setAttribute(name, value);
  }
  place(old, [...next.childNodes]);
}

/** A table: columns as {title, number}, rows as lists of cells. */
export function table(caption, columns, rows, attributes = {}) {
  const heads = columns.map((column) => h("th", { scope: "col", class: column.number ? "number" : null }, column.title));
  const cells = (row) => row.map((cell, index) => {
    const kind = columns[index].number ? "number" : columns[index].code ? "code" : null;
    return index === 0 && columns[0].heads
      ? h("th", { scope: "row", class: kind }, cell) : h("td", { class: kind }, cell);
  });
  // It scrolls by itself where it is wide, and so must take the focus for the arrow keys.
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption, ...attributes },
    h("table", {}, h("caption", { class: "unseen" }, caption),
      h("thead", {}, h("tr", {}, heads)),
      h("tbody", {}, rows.map((row) => h("tr", {}, cells(row))))));
}
