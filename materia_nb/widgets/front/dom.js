/** Helpers for creating elements; text is always inserted as text, never as HTML. */
import ICONS from "../../display/icons.json" with { type: "json" };

/** Drag type of a materia from the palette. */
export const MATERIA_TYPE = "application/x-mnb-materia";

/**
 * Make an element.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Attributes} [attrs] attributes; `on...` adds a listener, `value` is set as a property, and false and null are omitted
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function h(tag, attrs = {}, ...children) {
  const node = document.createElement(tag);
  fill(node, attrs, children);
  return node;
}

/** Make an SVG element. @template {keyof SVGElementTagNameMap} T @param {T} tag @param {Attributes} [attrs] @param {...Child} children @returns {SVGElementTagNameMap[T]} */
export function svg(tag, attrs = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  fill(node, attrs, children);
  return node;
}

/** Return an icon of the package (Lucide, see display/icons-license.txt) in the colour of the surrounding text. @param {keyof ICONS} name @param {number} [size] in pixels @returns {Node} */
export function icon(name, size = 16) {
  const text = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" width="${size}" height="${size}" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true" class="mnb-icon">${ICONS[name]}</svg>`;
  return document.importNode(new DOMParser().parseFromString(text, "image/svg+xml").documentElement, true);
}

/** @param {Element} node @param {Attributes} attrs @param {Child[]} children */
function fill(node, attrs, children) {
  for (const [name, value] of Object.entries(attrs)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "value" && !(node instanceof HTMLLIElement)) /** @type {any} */ (node).value = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  append(node, ...children);
}

/** Append children to an element, nested lists included. @param {Element} node @param {...Child} children */
export function append(node, ...children) {
  for (const child of /** @type {Child[]} */ (children.flat(9))) {
    if (child !== null && child !== undefined && child !== false) node.append(child instanceof Node ? child : String(child));
  }
}

/** Replace the children of an element. @param {Element} node @param {...Child} children */
export function refill(node, ...children) {
  node.replaceChildren();
  append(node, ...children);
}

/**
 * Make a button that ignores presses while disabled (see setEnabled).
 * @param {string} label
 * @param {string} title what it does
 * @param {(event: MouseEvent) => void} act
 * @param {Attributes} [attrs]
 */
export function button(label, title, act, attrs = {}) {
  const node = h("button", { type: "button", title, class: "mnb-b", ...attrs, onclick: (event) => isEnabled(node) && act(event) }, label);
  return node;
}

/** Time for which the subject of a guarded button must not have changed before a click counts, in milliseconds. */
const STILL_MS = 600;
/** @type {WeakMap<Element, ReturnType<typeof setTimeout>>} */
const settling = new WeakMap();
/** @type {ResizeObserver|undefined} */
let appearing;

/** Make a guarded button, or all guarded buttons in an element, inert for a moment because their subject has just changed or is `hidden`. @param {HTMLElement} node @param {boolean} [hidden] */
export function startSettling(node, hidden = false) {
  clearTimeout(settling.get(node));
  node.dataset.settling = hidden ? "hidden" : "yes";
  if (!hidden) settling.set(node, setTimeout(() => delete node.dataset.settling, STILL_MS));
}

/** Start settling for buttons that have just become visible. @param {ResizeObserverEntry[]} entries */
function appeared(entries) {
  for (const node of entries.map((entry) => /** @type {HTMLElement} */ (entry.target))) {
    const hidden = !node.getClientRects().length;
    if (hidden || node.dataset.settling === "hidden") startSettling(node, hidden);
  }
}

/**
 * Let a control act only on content that the user could read: a click counts if its subject has not just changed, and a double click counts once.
 * @param {HTMLElement} node @param {(event: MouseEvent) => void} act
 * @param {boolean} [often] for actions that are repeated quickly, such as Step: only the control itself must have stood still
 */
export function guard(node, act, often = false) {
  // A replaced button has no settling ancestor, so a click on it could answer the question that replaced it.
  const isLive = () => node.isConnected && !(often ? node.dataset.settling : node.closest("[data-settling]"));
  let pointer = true, key = true;
  node.dataset.acts = often ? "often" : "once";
  startSettling(node, true);
  (appearing ??= new ResizeObserver(appeared)).observe(node);
  node.addEventListener("pointerdown", () => (pointer = isLive()));
  node.addEventListener("keydown", ({ key: name, repeat }) => {
    if (name === "Enter" || (name === " " && !repeat)) key = !repeat && isLive();
  });
  node.addEventListener("click", (event) => {
    const began = event.detail ? pointer : key;
    pointer = key = true;
    if (began && isLive() && isEnabled(node) && (often || event.detail < 2)) act(event);
  });
}

/** Make a guarded button that acts on the cast or the design (see guard). @param {string} label @param {string} title @param {(event: MouseEvent) => void} act @param {Attributes} [attrs] @param {boolean} [often] */
export function actButton(label, title, act, attrs = {}, often = false) {
  const node = button(label, title, () => {}, attrs);
  guard(node, act, often);
  return node;
}

/** Set an attribute only if it differs, to avoid needless redrawing. @param {Element} node @param {string} name @param {any} value */
export function setAttr(node, name, value) {
  if (value === null || value === undefined || value === false) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, String(value));
}

/** Set the text only if it differs. @param {Node} node @param {string} text */
export function setText(node, text) {
  if (node.textContent === text) return;
  node.textContent = text;
  if (node instanceof HTMLElement && node.dataset.acts && node.dataset.settling !== "hidden") startSettling(node);
}

/** Enable or disable a control; a disabled control stays focusable, so that the focus is not lost. @param {HTMLElement} node @param {boolean} on @param {string} [why] why not */
export function setEnabled(node, on, why = "") {
  setAttr(node, "aria-disabled", on ? null : "true");
  node.dataset.title ??= node.title;
  setAttr(node, "title", on || !why ? node.dataset.title : why);
}

/** Return true if a control is enabled (see setEnabled). @param {Element} node */
export const isEnabled = (node) => node.getAttribute("aria-disabled") !== "true";

/** Return the focused element inside another element, or null. @param {Element} within @returns {HTMLElement|null} */
export function focused(within) {
  const element = document.activeElement;
  return element instanceof HTMLElement && within.contains(element) ? element : null;
}

/** Return true if an element is a visible field for typing. @param {Element|null} element */
export const isTyping = (element) => Boolean(element?.matches("input, select, textarea") && element.checkVisibility());

/** Show or hide an element; if it contains the focus, another control receives the focus. @param {HTMLElement} node @param {boolean} on @param {HTMLElement} next */
export function show(node, on, next) {
  const focus = !on && focused(node);
  node.hidden = !on;
  if (focus) next.focus({ preventScroll: true });
}

/** Return the target element of an event, or null. @param {Event} event @returns {Element|null} */
export const targetOf = (event) => (event.target instanceof Element ? event.target : null);

/** @type {WeakMap<Element, string>} */
const drawn = new WeakMap();

/** Return whether a value differs from the one that an element was last drawn from, and remember the value. @param {Element} node @param {unknown} value */
export function isNew(node, value) {
  const text = JSON.stringify(value) ?? "";
  if (drawn.get(node) === text) return false;
  drawn.set(node, text);
  return true;
}

/** Return a key that identifies a control across redraws. @param {HTMLElement} node */
const nameOf = (node) => node.dataset.key ?? (node.id || node.getAttribute("aria-label") || node.textContent);

/** Redraw the content of an element; the focus stays on the same control, or moves to `fallback`. @param {Element} node @param {() => Child} make @param {HTMLElement|null} [fallback] */
export function redraw(node, make, fallback = null) {
  const held = focused(node);
  const name = held && held !== node ? nameOf(held) : null;
  refill(node, make());
  if (!held || name === null) return;
  const same = [...node.querySelectorAll(held.tagName)].find((element) => element instanceof HTMLElement && nameOf(element) === name);
  (/** @type {HTMLElement|undefined} */ (same) ?? fallback)?.focus({ preventScroll: true });
}

/** Draw a notice of the kernel, with a button that dismisses it. @param {HTMLElement} node @param {Data|undefined} notice @param {() => void} dismiss @param {Child} [action] another button */
export function drawNotice(node, notice = {}, dismiss, action) {
  const { words: text = "", tone = "" } = notice, bad = tone === "bad";
  node.hidden = !text;
  node.dataset.tone = tone;
  if (isNew(node, notice)) refill(node, text && [h("span", { role: bad ? "alert" : "status" }, `${bad ? "✖ " : ""}${text}`), action, button("×", "dismiss this message", dismiss, { class: "mnb-x", "aria-label": "dismiss this message" })]);
}

/** Listen to keys by name; a handled key does not propagate unless its listener returns false. @param {HTMLElement} node @param {Record<string, (event: KeyboardEvent) => unknown>} keys */
export function onKeys(node, keys) {
  node.addEventListener("keydown", (event) => {
    if (!keys[event.key] || keys[event.key](event) === false) return;
    event.preventDefault();
    event.stopPropagation();
  });
}

/** Return the element `by` positions after the focused element, wrapping around. @template {Element} T @param {T[]} all @param {number} by @returns {T|undefined} */
export function neighbour(all, by) {
  return all[(all.findIndex((element) => element === document.activeElement) + by + all.length) % all.length] ?? all[0];
}

/**
 * Ask for one line of text in an element that is normally hidden.
 * @param {HTMLElement} line
 * @param {{words: string, shape?: string, value?: string}} what
 * @param {(text: string) => void} done
 */
export function askLine(line, { words: question, shape = question, value = "" }, done) {
  const field = h("input", { class: "mnb-in", value, "aria-label": shape === question ? question : `${question}: ${shape}`, placeholder: shape, autocomplete: "off" });
  const before = document.activeElement;
  const end = (/** @type {boolean} */ ok) => {
    if (!field.isConnected) return;
    line.hidden = true;
    line.replaceChildren();
    if (before instanceof HTMLElement) before.focus();
    if (ok) done(field.value.trim());
  };
  // Otherwise the same key press would also click the button to which the focus returns.
  onKeys(field, { Enter: () => end(true), Escape: () => end(false) });
  refill(line, h("span", {}, question), field, button("OK", question, () => end(true), { class: "mnb-b mnb-main" }), button("Cancel", "leave it", () => end(false)));
  line.dataset.tone = "";
  line.hidden = false;
  field.focus();
  field.select();
}
