/** Splitters between the parts, moved by dragging or with the arrow keys. */
import { h, onKeys } from "./dom.js";

const SIZES = {
  columns: { name: "--mnb-side", minimum: 220, keep: 260, label: "width of the inspector", moves: ".mnb-inspector" },
  rows: { name: "--mnb-low", minimum: 60, keep: 160, label: "height of the dock", moves: ".mnb-dock" },
};

/** Limit a size to the range from a minimum to the available space. @param {number} size @param {number} minimum @param {number} room */
export const sizeWithin = (size, minimum, room) => Math.round(Math.max(minimum, Math.min(room, size)));

/** @param {HTMLElement} el the front's element, a child of the surface @param {"columns"|"rows"} which */
export function splitter(el, which) {
  const { name, minimum, keep, label, moves } = SIZES[which], wide = which === "columns";
  const bar = h("div", {
    class: `mnb-split mnb-split-${which}`, role: "separator", tabindex: "0", "aria-label": label, "aria-valuenow": "0",
    "aria-orientation": wide ? "vertical" : "horizontal", "data-lm-suppress-shortcuts": "true",
  });
  el.append(bar);
  const surface = () => /** @type {HTMLElement|null} */ (el.closest(".mnb-surface"));
  const size = () => {
    const box = surface()?.querySelector(moves)?.getBoundingClientRect();
    return box ? (wide ? box.width : box.height) : 0;
  };
  const set = (/** @type {number} */ newSize) => {
    const box = surface();
    if (!box) return;
    const room = (wide ? box.clientWidth : box.clientHeight) - keep, value = sizeWithin(newSize, minimum, room);
    box.style.setProperty(name, `${value}px`);
    bar.setAttribute("aria-valuenow", String(value));
    bar.setAttribute("aria-valuemin", String(minimum));
    bar.setAttribute("aria-valuemax", String(Math.round(Math.max(minimum, room))));
  };
  const at = (/** @type {PointerEvent} */ event) => (wide ? event.clientX : event.clientY);
  /** @type {{at: number, size: number}|null} */
  let from = null;
  bar.addEventListener("pointerdown", (event) => {
    from = { at: at(event), size: size() };
    bar.setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  bar.addEventListener("pointermove", (event) => from && set(from.size + from.at - at(event)));
  for (const end of ["pointerup", "pointercancel"]) bar.addEventListener(end, () => (from = null));
  const by = (/** @type {number} */ step) => () => set(size() + step);
  onKeys(bar, { ArrowLeft: by(24), ArrowUp: by(24), ArrowRight: by(-24), ArrowDown: by(-24) });
}
