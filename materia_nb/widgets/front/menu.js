/** A small menu that opens over everything else, for mouse and keyboard. */
import { h } from "./dom.js";

let menuOpen = null;

/** Close the menu that is open, if one is. */
export function closeMenu() {
  if (menuOpen) menuOpen();
}

/**
 * Open a menu at an element or a point of the window.
 * @param {HTMLElement|{x: number, y: number, within: HTMLElement}} at
 * @param {Array<{words: string, act?: () => void, tone?: string, off?: boolean, why?: string}>} entries without `act` a line of text
 * @param {{label?: string, sought?: boolean}} [options] `sought`: a field that filters, for long lists
 */
export function openMenu(at, entries, options = {}) {
  closeMenu();
  const anchor = at instanceof HTMLElement ? at : null;
  const host = (anchor || at.within).closest(".mnb-surface") || document.body;
  const list = h("div", { class: "mnb-menu-list", role: "menu", "aria-label": options.label || "menu" });
  const items = entries.map((one) => menuLine(one));
  list.append(...items);
  const field = options.sought
    ? h("input", { class: "mnb-in", type: "search", placeholder: "find", "aria-label": "find in this list" })
    : null;
  const box = h("div", { class: "mnb-menu" }, field, list);
  host.append(box);
  const before = document.activeElement;
  const close = () => {
    menuOpen = null;
    box.remove();
    document.removeEventListener("pointerdown", outside, true);
    if (anchor) anchor.removeAttribute("aria-expanded");
    if (before instanceof HTMLElement && before.isConnected) before.focus({ preventScroll: true });
  };
  const outside = (event) => {
    if (!box.contains(event.target)) close();
  };
  menuOpen = close;
  document.addEventListener("pointerdown", outside, true);
  if (anchor) anchor.setAttribute("aria-expanded", "true");
  menuPlace(box, host, anchor ? anchor.getBoundingClientRect() : { left: at.x, bottom: at.y, top: at.y });
  const shown = () => items.filter((one) => one.tagName === "BUTTON" && !one.hidden);
  const move = (by) => {
    const all = shown();
    const here = all.indexOf(document.activeElement);
    (all[(here + by + all.length) % all.length] || all[0])?.focus();
  };
  box.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key === "Escape" || event.key === "Tab") close();
    else if (event.key === "ArrowDown") move(1);
    else if (event.key === "ArrowUp") move(-1);
    else if (event.key === "Enter" && event.target === field) shown()[0]?.click();
    else return;
    if (event.key !== "Tab") event.preventDefault();
  });
  field?.addEventListener("input", () => {
    const wanted = field.value.trim().toLowerCase();
    for (const one of items) one.hidden = !one.textContent.toLowerCase().includes(wanted);
  });
  (field || shown()[0] || box).focus({ preventScroll: true });

  function menuLine(one) {
    if (!one.act) return h("div", { class: "mnb-menu-text" }, one.words);
    const line = h(
      "button",
      { type: "button", role: "menuitem", class: `mnb-menu-item ${one.tone ? "mnb-" + one.tone : ""}`, title: one.why },
      one.words,
    );
    if (one.off) line.setAttribute("aria-disabled", "true");
    line.addEventListener("click", () => {
      if (one.off) return;
      close();
      one.act();
    });
    return line;
  }
}

function menuPlace(box, host, at) {
  const room = host.getBoundingClientRect();
  const left = Math.min(at.left - room.left, room.width - box.offsetWidth - 8);
  const below = at.bottom - room.top + 2;
  const fits = below + box.offsetHeight < room.height;
  const top = fits ? below : Math.max(4, Math.min(at.top - room.top, room.height) - box.offsetHeight - 2);
  box.style.left = `${Math.max(4, left)}px`;
  box.style.top = `${top}px`;
  box.style.maxHeight = `${Math.max(80, room.height - top - 8)}px`;
}
