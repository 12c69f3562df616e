/** Lines between the parts that can be dragged, or moved with the arrow keys. */
import { h } from "./dom.js";

const SPLIT_SIZES = { columns: { name: "--mnb-side", least: 220, keep: 260, words: "width of the inspector" }, rows: { name: "--mnb-low", least: 60, keep: 160, words: "height of the dock" } };

/**
 * @param {HTMLElement} el the front's element, a child of the surface
 * @param {"columns"|"rows"} which
 */
export function splitter(el, which) {
  const { name, least, keep, words } = SPLIT_SIZES[which];
  const bar = h("div", {
    class: `mnb-split mnb-split-${which}`,
    role: "separator",
    tabindex: "0",
    "aria-label": words,
    "aria-orientation": which === "columns" ? "vertical" : "horizontal",
    "data-lm-suppress-shortcuts": "true",
  });
  el.append(bar);
  const surface = () => el.closest(".mnb-surface");
  const target = () => surface()?.querySelector(which === "columns" ? ".mnb-inspector" : ".mnb-dock");
  const size = () => {
    const box = target()?.getBoundingClientRect();
    return box ? (which === "columns" ? box.width : box.height) : 0;
  };
  const set = (wanted) => {
    const box = surface();
    if (!box) return;
    const room = (which === "columns" ? box.clientWidth : box.clientHeight) - keep;
    const value = Math.round(Math.max(least, Math.min(room, wanted)));
    box.style.setProperty(name, `${value}px`);
    bar.setAttribute("aria-valuenow", String(value));
    bar.setAttribute("aria-valuemin", String(least));
    bar.setAttribute("aria-valuemax", String(Math.round(Math.max(least, room))));
  };
  bar.setAttribute("aria-valuenow", "0");
  let from = null;
  bar.addEventListener("pointerdown", (event) => {
    from = { at: which === "columns" ? event.clientX : event.clientY, size: size() };
    bar.setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  bar.addEventListener("pointermove", (event) => {
    if (from) set(from.size + from.at - (which === "columns" ? event.clientX : event.clientY));
  });
  const end = () => (from = null);
  bar.addEventListener("pointerup", end);
  bar.addEventListener("pointercancel", end);
  bar.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: 24, ArrowUp: 24, ArrowRight: -24, ArrowDown: -24 }[event.key];
    if (!by) return;
    event.preventDefault();
    set(size() + by);
  });
  return { update() {}, destroy() {} };
}
