/** A small menu that opens over everything else, for mouse and keyboard. */
import { guard, h, onKeys, neighbour, targetOf, icon } from "./dom.js";

let close = () => {};

/** Close the open menu, if any. */
export const closeMenu = () => close();

/**
 * Open a menu at an element, or at a point of the window.
 * @param {HTMLElement|(Point & {within: HTMLElement})} at
 * @param {MenuEntry[]} entries
 * @param {{label?: string, searchable?: boolean, named?: {words: string, sign?: MenuEntry["sign"], act: (name: string) => void}[]}} [options] `searchable`: adds a field that
 *   filters, for long lists; `named`: actions on a typed name that matches no entry
 */
export function openMenu(at, entries, { label = "menu", searchable = false, named = [] } = {}) {
  closeMenu();
  const anchor = at instanceof HTMLElement ? at : null, within = at instanceof HTMLElement ? at : at.within;
  const host = /** @type {HTMLElement} */ (within.closest(".mnb-surface") ?? within.closest(".mnb-graph") ?? document.body);
  const typed = () => field?.value.trim() ?? "";
  /** @type {MenuEntry[]} */
  const namedEntries = named.map((action) => ({ ...action, act: () => action.act(typed()) }));
  const items = [...entries, ...namedEntries].map(({ words, act, tone, off, why, sign, acts }) => {
    if (!act) return h("div", { class: "mnb-menu-text" }, words);
    const press = () => {
      if (off) return;
      close();
      act();
    };
    const item = h("button", { type: "button", role: "menuitem", class: `mnb-menu-item ${tone ? `mnb-${tone}` : ""}`, title: why, "aria-disabled": off ? "true" : null, onclick: acts ? undefined : press }, sign && icon(sign), words);
    if (acts) guard(item, press);
    return item;
  });
  const field = searchable ? h("input", { class: "mnb-in", type: "search", placeholder: "find", "aria-label": "find in this list" }) : null;
  const box = h("div", { class: "mnb-menu" }, field, h("div", { class: "mnb-menu-list", role: "menu", "aria-label": label }, items));
  host.append(box);
  const before = document.activeElement;
  const outside = (/** @type {Event} */ event) => box.contains(targetOf(event)) || close();
  close = () => {
    close = () => {};
    document.removeEventListener("pointerdown", outside, true);
    anchor?.removeAttribute("aria-expanded");
    // This must happen before the removal: when the focused element disappears, the notebook takes the focus and all keys.
    const back = before instanceof HTMLElement && before.isConnected && before !== document.body ? before : host;
    if (box.contains(document.activeElement)) back.focus({ preventScroll: true });
    box.remove();
  };
  document.addEventListener("pointerdown", outside, true);
  anchor?.setAttribute("aria-expanded", "true");
  positionMenu(box, host, at instanceof HTMLElement ? at.getBoundingClientRect() : { left: at.x, bottom: at.y, top: at.y });
  const buttons = () => items.filter((item) => item instanceof HTMLButtonElement && !item.hidden);
  onKeys(box, {
    Escape: () => close(),
    Tab: () => (close(), false),
    ArrowDown: () => neighbour(buttons(), 1)?.focus(),
    ArrowUp: () => neighbour(buttons(), -1)?.focus(),
    Enter: (event) => event.target === field && buttons()[0]?.click(),
  });
  box.addEventListener("keydown", (event) => event.stopPropagation());
  box.addEventListener("contextmenu", (event) => (event.preventDefault(), event.stopPropagation()));
  const filter = () => {
    const query = typed().toLowerCase(), has = entries.some((entry) => entry.words.toLowerCase() === query);
    for (const [number, item] of items.entries()) {
      const other = named[number - entries.length];
      if (other) item.lastChild?.replaceWith(`${other.words} ${typed()}`);
      item.hidden = other ? !query || has : !item.textContent?.toLowerCase().includes(query);
    }
  };
  field?.addEventListener("input", filter);
  filter();
  (field ?? buttons()[0] ?? box).focus({ preventScroll: true });
}

/** @param {HTMLElement} box @param {HTMLElement} host @param {{left: number, bottom: number, top: number}} at */
function positionMenu(box, host, at) {
  const room = host.getBoundingClientRect(), low = Math.min(room.height, window.innerHeight - room.top - 4); // the visible part
  const left = Math.min(at.left - room.left, room.width - box.offsetWidth - 8), below = at.bottom - room.top + 2;
  const top = below + box.offsetHeight < low ? below : Math.max(4, Math.min(at.top - room.top, low) - box.offsetHeight - 2);
  Object.assign(box.style, { left: `${Math.max(4, left)}px`, top: `${top}px`, maxHeight: `${Math.max(80, low - top - 8)}px` });
}
