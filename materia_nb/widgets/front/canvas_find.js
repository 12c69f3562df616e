/** A searchable list of all selectable parts, which makes the graph accessible to people who cannot see the picture. */
import { h, refill, setAttr, targetOf } from "./dom.js";

/**
 * @param {(element: string) => void} choose called with the element that the user selected
 * @param {(element: string|null) => void} point called with the active entry while the user goes through the list, or null at the end
 */
export function canvasFinder(choose, point) {
  const field = h("input", { type: "search", class: "mnb-c-in", placeholder: "find a socket, edge or loop", "aria-label": "find in the graph", autocomplete: "off" });
  const list = h("ul", { class: "mnb-c-list", role: "listbox", "aria-label": "everything that can be selected in the graph", tabindex: "0" });
  const box = h("div", { class: "mnb-c-find" }, field, list);
  let at = -1;
  /** @type {HTMLElement|null} the element that had the focus before the list opened */
  let opened = null;
  const items = () => [...list.querySelectorAll("li")], visibleItems = () => items().filter((item) => !item.hidden);
  const elementOf = (/** @type {HTMLElement} */ item) => item.dataset.element ?? "";
  const set = (/** @type {number} */ next, tell = true) => {
    const all = visibleItems();
    for (const item of items()) setAttr(item, "aria-selected", "false");
    at = all.length ? Math.max(0, Math.min(next, all.length - 1)) : -1;
    const item = all[at];
    setAttr(list, "aria-activedescendant", item?.id);
    if (!item) return;
    item.setAttribute("aria-selected", "true");
    item.scrollIntoView({ block: "nearest" });
    if (tell) point(elementOf(item));
  };
  const filter = () => {
    const query = field.value.trim().toLowerCase();
    for (const item of items()) item.hidden = !item.textContent?.toLowerCase().includes(query);
    set(0, query !== "");
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
    const item = visibleItems()[at];
    if (!item) return;
    close();
    choose(elementOf(item));
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
    if (!box.contains(/** @type {Node|null} */ (event.relatedTarget))) away(); // the focus has already moved elsewhere
  });
  list.addEventListener("click", (event) => {
    const item = targetOf(event)?.closest("li");
    if (!item) return;
    set(visibleItems().indexOf(item), false);
    take();
  });
  return {
    box,
    /** @param {Scene["list"]} named @param {string} prefix of the ids in the page */
    set(named, prefix) {
      refill(list, named.map(([label, element, depth], n) => h("li", { id: `${prefix}-${n}`, role: "option", "aria-selected": "false", "data-element": element, "data-depth": depth }, label)));
      filter();
    },
    /** Mark the selected element in the list. @param {string|null} [element] */
    mark(element) {
      const index = visibleItems().findIndex((item) => item.dataset.element === element);
      if (index >= 0 && opened === null) set(index, false);
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
