/** The list of all that can be selected, with a field to find it by name: the picture for who does not see it. */
import { h, refill, setAttr, targetOf } from "./dom.js";

/**
 * @param {(element: string) => void} choose called with the element that a person selected
 * @param {(element: string|null) => void} point called while a person looks through the list
 */
export function canvasFinder(choose, point) {
  const field = h("input", { type: "search", class: "mnb-c-in", placeholder: "find a socket, edge or loop", "aria-label": "find in the graph", autocomplete: "off" });
  const list = h("ul", { class: "mnb-c-list", role: "listbox", "aria-label": "everything that can be selected in the graph", tabindex: "0" });
  const box = h("div", { class: "mnb-c-find" }, field, list);
  let at = -1;
  /** @type {HTMLElement|null} what had the focus before it was opened */
  let opened = null;
  const lines = () => [...list.querySelectorAll("li")], shown = () => lines().filter((one) => !one.hidden);
  const elementOf = (/** @type {HTMLElement} */ one) => one.dataset.element ?? "";
  const set = (/** @type {number} */ next, tell = true) => {
    const all = shown();
    for (const one of lines()) setAttr(one, "aria-selected", "false");
    at = all.length ? Math.max(0, Math.min(next, all.length - 1)) : -1;
    const one = all[at];
    setAttr(list, "aria-activedescendant", one?.id);
    if (!one) return;
    one.setAttribute("aria-selected", "true");
    one.scrollIntoView({ block: "nearest" });
    if (tell) point(elementOf(one));
  };
  const filter = () => {
    const wanted = field.value.trim().toLowerCase();
    for (const one of lines()) one.hidden = !one.textContent?.toLowerCase().includes(wanted);
    set(0, wanted !== "");
  };
  const away = () => {
    box.classList.remove("mnb-c-open");
    opened = null;
    field.value = "";
    filter();
    point(null);
  };
  const close = () => {
    const back = opened;
    if (!back) return;
    away();
    back.focus({ preventScroll: true });
  };
  const take = () => {
    const one = shown()[at];
    if (!one) return;
    close();
    choose(elementOf(one));
  };
  const keys = (/** @type {KeyboardEvent} */ event) => {
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[event.key];
    if (by) set(at + by);
    else if (event.key === "Home" && event.target === list) set(0);
    else if (event.key === "End" && event.target === list) set(1e9);
    else if (event.key === "Enter") take();
    else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  field.addEventListener("input", filter);
  box.addEventListener("keydown", keys);
  box.addEventListener("focusout", (event) => {
    if (!box.contains(/** @type {Node|null} */ (event.relatedTarget))) away(); // the focus goes where it goes
  });
  list.addEventListener("click", (event) => {
    const one = targetOf(event)?.closest("li");
    if (!one) return;
    set(shown().indexOf(one), false);
    take();
  });
  return {
    box,
    /** @param {Scene["list"]} named @param {string} prefix of the ids in the page */
    set(named, prefix) {
      refill(list, named.map(([words, element, depth], n) => h("li", { id: `${prefix}-${n}`, role: "option", "aria-selected": "false", "data-element": element, "data-depth": depth }, words)));
      filter();
    },
    /** Mark in the list what is selected. @param {string|null} [element] */
    mark(element) {
      const place = shown().findIndex((one) => one.dataset.element === element);
      if (place >= 0 && opened === null) set(place, false);
    },
    open() {
      opened = /** @type {HTMLElement|null} */ (document.activeElement);
      box.classList.add("mnb-c-open");
      field.value = "";
      filter();
      field.focus({ preventScroll: true });
    },
    close,
  };
}
