/** Making elements: text only ever as text. */

/** What a materia is dragged as, from the palette onto the canvas. */
export const MATERIA_TYPE = "application/x-mnb-materia";

/**
 * Make an element.
 * @param {string} tag
 * @param {Record<string, any>} [attrs] attributes; `on...` are listeners, `class` the class, false and null are left out
 * @param {...(Node|string|number|null|false|undefined)} children
 * @returns {HTMLElement}
 */
export function h(tag, attrs = {}, ...children) {
  return fillNode(document.createElement(tag), attrs, children);
}

/**
 * Make an SVG element.
 * @param {string} tag
 * @param {Record<string, any>} [attrs]
 * @param {...(Node|string|null|false|undefined)} children
 * @returns {SVGElement}
 */
export function svg(tag, attrs = {}, ...children) {
  return fillNode(document.createElementNS("http://www.w3.org/2000/svg", tag), attrs, children);
}

function fillNode(node, attrs, children) {
  for (const [name, value] of Object.entries(attrs || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "value") node.value = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(3)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}

/** Empty an element. */
export function clear(node) {
  while (node.firstChild) node.firstChild.remove();
  return node;
}

/**
 * Make a button.
 * @param {string} words
 * @param {string} title what it does
 * @param {(event: Event) => void} act
 * @param {Record<string, any>} [attrs]
 */
export function button(words, title, act, attrs = {}) {
  return h("button", { type: "button", title, class: "mnb-b", ...attrs, onclick: act }, words);
}

/** Set an attribute only where it differs, so that nothing is drawn again for nothing. */
export function setAttr(node, name, value) {
  if (value === null || value === undefined || value === false) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, String(value));
}

/** Set the text only where it differs. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Disable a button without losing the focus: a control that has it stays focusable. */
export function setEnabled(node, on, why = "") {
  setAttr(node, "aria-disabled", on ? null : "true");
  if (node.dataset.title === undefined) node.dataset.title = node.title;
  setAttr(node, "title", on || !why ? node.dataset.title : why);
}

/** Whether a control may be used; see setEnabled. */
export function isEnabled(node) {
  return node.getAttribute("aria-disabled") !== "true";
}

/** Send a message to the kernel; without one nobody hears it, and a bar says so. */
export function sendMessage(model, message) {
  try {
    model.send(message);
  } catch (error) {
    console.warn("materia_nb: no kernel to send to", error);
  }
}

/** Write a duration given in milliseconds: 8.1 s, 1:42, 2:03:04. */
export function durationWords(ms) {
  const s = Math.max(0, ms) / 1000;
  if (s < 9.95) return s.toFixed(1) + " s";
  if (s < 59.5) return Math.round(s) + " s";
  const whole = Math.round(s), pad = (n) => String(n).padStart(2, "0");
  const hours = Math.floor(whole / 3600), minutes = Math.floor(whole / 60) % 60;
  return hours ? `${hours}:${pad(minutes)}:${pad(whole % 60)}` : `${minutes}:${pad(whole % 60)}`;
}

/** Write a count with separators, or short: 15.4k. */
export function countWords(n, short = false) {
  if (!short || n < 1000) return n.toLocaleString("en");
  return (n < 1e6 ? (n / 1000).toFixed(1) + "k" : (n / 1e6).toFixed(1) + "M").replace(".0", "");
}
