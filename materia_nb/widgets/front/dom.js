/** Making elements: text only ever as text. */

/** What a materia is dragged as, from the palette onto the canvas. */
export const MATERIA_TYPE = "application/x-mnb-materia";

/**
 * Make an element.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Attributes} [attrs] attributes; `on...` are listeners, `value` is set, false and null are left out
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function h(tag, attrs = {}, ...children) {
  const node = document.createElement(tag);
  fill(node, attrs, children);
  return node;
}

/**
 * Make an SVG element.
 * @template {keyof SVGElementTagNameMap} T
 * @param {T} tag
 * @param {Attributes} [attrs]
 * @param {...Child} children
 * @returns {SVGElementTagNameMap[T]}
 */
export function svg(tag, attrs = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  fill(node, attrs, children);
  return node;
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

/** Put children into an element, lists of them too. @param {Element} node @param {...Child} children */
export function append(node, ...children) {
  for (const child of /** @type {Child[]} */ (children.flat(9))) {
    if (child !== null && child !== undefined && child !== false) node.append(child instanceof Node ? child : String(child));
  }
}

/** Put children in place of those that are there. @param {Element} node @param {...Child} children */
export function refill(node, ...children) {
  node.replaceChildren();
  append(node, ...children);
}

/**
 * Make a button; while it is disabled, see setEnabled, a press does nothing.
 * @param {string} label
 * @param {string} title what it does
 * @param {(event: MouseEvent) => void} act
 * @param {Attributes} [attrs]
 */
export function button(label, title, act, attrs = {}) {
  const node = h("button", { type: "button", title, class: "mnb-b", ...attrs, onclick: (event) => isEnabled(node) && act(event) }, label);
  return node;
}

/** How long what an acting button is about must have stood still before a press on it counts, in milliseconds. */
const STILL_MS = 600;
/** @type {WeakMap<Element, ReturnType<typeof setTimeout>>} */
const settling = new WeakMap();
/** @type {ResizeObserver|undefined} */
let appearing;

/** Keep acting buttons inert, the element itself or those in it: what they are about has just changed, or is `hidden`. @param {HTMLElement} node @param {boolean} [hidden] */
export function startSettling(node, hidden = false) {
  clearTimeout(settling.get(node));
  node.dataset.settling = hidden ? "hidden" : "yes";
  if (!hidden) settling.set(node, setTimeout(() => delete node.dataset.settling, STILL_MS));
}

/** Hold buttons until they have been seen for a moment. @param {ResizeObserverEntry[]} entries */
function appeared(entries) {
  for (const node of entries.map((entry) => /** @type {HTMLElement} */ (entry.target))) {
    const hidden = !node.getClientRects().length;
    if (hidden || node.dataset.settling === "hidden") startSettling(node, hidden);
  }
}

/**
 * Let a control act only on what was shown: a press counts if it began after that had stood still, and a double click counts once.
 * @param {HTMLElement} node @param {(event: MouseEvent) => void} act
 * @param {boolean} [often] for an act that is repeated quickly, such as Step: only the control itself must have been there
 */
export function guard(node, act, often = false) {
  const isLive = () => !(often ? node.dataset.settling : node.closest("[data-settling]"));
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

/** Make a button that acts on the cast or the design, see guard. @param {string} label @param {string} title @param {(event: MouseEvent) => void} act @param {Attributes} [attrs] @param {boolean} [often] */
export function actButton(label, title, act, attrs = {}, often = false) {
  const node = button(label, title, () => {}, attrs);
  guard(node, act, often);
  return node;
}

/** Set an attribute only where it differs, so that nothing is drawn again for nothing. @param {Element} node @param {string} name @param {any} value */
export function setAttr(node, name, value) {
  if (value === null || value === undefined || value === false) node.removeAttribute(name);
  else if (node.getAttribute(name) !== String(value)) node.setAttribute(name, String(value));
}

/** Set the text only where it differs. @param {Node} node @param {string} text */
export function setText(node, text) {
  if (node.textContent === text) return;
  node.textContent = text;
  if (node instanceof HTMLElement && node.dataset.acts && node.dataset.settling !== "hidden") startSettling(node);
}

/** Disable a button without losing the focus: a control that has it stays focusable. @param {HTMLElement} node @param {boolean} on @param {string} [why] why not */
export function setEnabled(node, on, why = "") {
  setAttr(node, "aria-disabled", on ? null : "true");
  node.dataset.title ??= node.title;
  setAttr(node, "title", on || !why ? node.dataset.title : why);
}

/** Whether a control may be used; see setEnabled. @param {Element} node */
export const isEnabled = (node) => node.getAttribute("aria-disabled") !== "true";

/** The element inside another that has the focus. @param {Element} within @returns {HTMLElement|null} */
export function focused(within) {
  const element = document.activeElement;
  return element instanceof HTMLElement && within.contains(element) ? element : null;
}

/** What an event happened to. @param {Event} event @returns {Element|null} */
export const targetOf = (event) => (event.target instanceof Element ? event.target : null);

/** @type {WeakMap<Element, string>} */
const drawn = new WeakMap();

/**
 * Say whether an element was drawn from another value than this, and keep that it is drawn from this now.
 * @param {Element} node
 * @param {unknown} value
 */
export function isNew(node, value) {
  const text = JSON.stringify(value) ?? "";
  if (drawn.get(node) === text) return false;
  drawn.set(node, text);
  return true;
}

/** What makes a control the same one after it was drawn anew. @param {HTMLElement} node */
const nameOf = (node) => node.dataset.key ?? (node.id || node.getAttribute("aria-label") || node.textContent);

/**
 * Draw the inside of an element anew; the focus stays on the control that had it, or else goes to `fallback`.
 * @param {Element} node
 * @param {() => Child} make
 * @param {HTMLElement|null} [fallback]
 */
export function redraw(node, make, fallback = null) {
  const held = focused(node);
  const name = held && held !== node ? nameOf(held) : null;
  refill(node, make());
  if (!held || name === null) return;
  const same = [...node.querySelectorAll(held.tagName)].find((element) => element instanceof HTMLElement && nameOf(element) === name);
  (/** @type {HTMLElement|undefined} */ (same) ?? fallback)?.focus({ preventScroll: true });
}

/**
 * Listen to keys by their names; what is heard goes no further, unless its listener returns false.
 * @param {HTMLElement} node
 * @param {Record<string, (event: KeyboardEvent) => unknown>} keys
 */
export function onKeys(node, keys) {
  node.addEventListener("keydown", (event) => {
    if (!keys[event.key] || keys[event.key](event) === false) return;
    event.preventDefault();
    event.stopPropagation();
  });
}

/** The element so far from that which has the focus, round the ends. @template {Element} T @param {T[]} all @param {number} by @returns {T|undefined} */
export function neighbour(all, by) {
  return all[(all.findIndex((element) => element === document.activeElement) + by + all.length) % all.length] ?? all[0];
}

/**
 * Ask for one line of text in an element that is hidden otherwise.
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
  // What is heard goes no further, or the button that the focus goes back to is pressed by the same key.
  onKeys(field, { Enter: () => end(true), Escape: () => end(false) });
  refill(line, h("span", {}, question), field, button("OK", question, () => end(true), { class: "mnb-b mnb-main" }), button("Cancel", "leave it", () => end(false)));
  line.dataset.tone = "";
  line.hidden = false;
  field.focus();
  field.select();
}
