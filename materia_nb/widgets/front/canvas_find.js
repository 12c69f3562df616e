/** The list of all that can be selected, with a field to find it by name: the picture for who does not see it. */
import { h, clear, setAttr } from "./dom.js";

/**
 * @param {(element: string) => void} choose called with the element that a person selected
 * @param {(element: string|null) => void} point called while a person looks through the list
 */
export function canvasFinder(choose, point) {
  const field = h("input", { type: "search", class: "mnb-c-in", placeholder: "find a socket, edge or loop", "aria-label": "find in the graph", autocomplete: "off" });
  const list = h("ul", { class: "mnb-c-list", role: "listbox", "aria-label": "everything that can be selected in the graph", tabindex: "0" });
  const box = h("div", { class: "mnb-c-find", role: "search" }, field, list);
  let entries = [];
  let at = -1;
  let opened = null;

  const shown = () => [...list.children].filter((one) => !one.hidden);
  const set = (next, tell = true) => {
    const all = shown();
    for (const one of list.querySelectorAll("[aria-selected=true]")) one.setAttribute("aria-selected", "false");
    at = all.length ? Math.max(0, Math.min(next, all.length - 1)) : -1;
    const one = all[at];
    setAttr(list, "aria-activedescendant", one?.id);
    if (!one) return;
    one.setAttribute("aria-selected", "true");
    one.scrollIntoView({ block: "nearest" });
    if (tell) point(one.dataset.element);
  };
  const filter = () => {
    const wanted = field.value.trim().toLowerCase();
    for (const one of list.children) one.hidden = !one.textContent.toLowerCase().includes(wanted);
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
    if (back === null) return;
    away();
    back?.focus?.({ preventScroll: true });
  };
  const take = () => {
    const one = shown()[at];
    if (!one) return;
    const element = one.dataset.element;
    close();
    choose(element);
  };
  const keys = (event) => {
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
    if (!box.contains(event.relatedTarget)) away(); // the focus goes where it goes
  });
  list.addEventListener("click", (event) => {
    const one = event.target.closest("li");
    if (!one) return;
    set(shown().indexOf(one), false);
    take();
  });
  return {
    box,
    /** @param {Array<[string, string, number]>} named words, element, depth */
    set(named, prefix) {
      entries = named;
      clear(list).append(
        ...entries.map(([words, element, depth], n) =>
          h("li", { id: `${prefix}-${n}`, role: "option", "aria-selected": "false", "data-element": element, "data-depth": depth }, words),
        ),
      );
      filter();
    },
    /** Mark in the list what is selected. */
    mark(element) {
      const place = shown().findIndex((one) => one.dataset.element === element);
      if (place >= 0 && opened === null) set(place, false);
    },
    open() {
      opened = document.activeElement;
      box.classList.add("mnb-c-open");
      field.value = "";
      filter();
      field.focus({ preventScroll: true });
    },
    close,
  };
}
