/** Design mode: palette, inspector, dock and bar around the graph. */
import { h } from "./dom.js";
import { designBarPart, designKeys } from "./design_bar.js";
import { palettePart } from "./palette.js";
import { designInspectorPart } from "./design_inspector.js";
import { problemsPart } from "./problems.js";

/**
 * The parts of design mode in a surface. They are created when design mode is first entered, and listen while it is active.
 * @param {{el: HTMLElement, bar: HTMLElement, palette: HTMLElement, inspector: HTMLElement, problems: HTMLElement}} cells
 * @param {SendToDesigner} send
 * @param {() => MenuEntry[]} [menuEntries] entries that the surface adds to the menu of the bar
 */
export function designParts(cells, send, menuEntries) {
  const side = h("div", { class: "mnb-d-side", hidden: true }), tools = h("span", { class: "mnb-d-bar", hidden: true });
  cells.inspector.append(side);
  const modes = cells.bar.querySelector(".mnb-modes");
  modes ? modes.after(tools) : cells.bar.append(tools);
  /** @type {Part[]} */
  let parts = [];
  /** @type {HTMLElement|null} */
  let box = null;
  let listening = new AbortController();
  let on = false, unkey = () => {}, last = /** @type {Data} */ ({}), askForSocket = (/** @type {Event} */ _event) => {};
  const picked = (/** @type {Event} */ event) => {
    const { kind, id, add } = /** @type {CustomEvent} */ (event).detail ?? {};
    if (on) send("pick", { part: kind ? [kind, id] : null, add: add === true });
  };
  // A coding agent may have handed over a draft in the meantime, so check when the user comes back.
  let lastVisit = Date.now();
  const back = () => {
    if (on && Date.now() - lastVisit > 5000) send("news");
    lastVisit = Date.now();
  };
  const update = (/** @type {Data} */ data) => {
    last = data;
    if (on && data.bar) for (const part of parts) part.update(data);
  };
  return {
    update,
    /** Switch design mode on or off in the current surface. @param {boolean} now @param {HTMLElement|null} surface */
    mode(now, surface) {
      if (now && !parts.length) {
        const problems = problemsPart(cells.problems, send), palette = palettePart(cells.palette, send);
        parts = [designBarPart(tools, send, problems.open, menuEntries), palette, designInspectorPart(side, send), problems];
        askForSocket = palette.askForSocket;
      }
      const elsewhere = surface && surface !== box;
      if (elsewhere) {
        listening.abort();
        listening = new AbortController();
        box = surface;
        box.addEventListener("mnb-pick", picked, listening);
        box.addEventListener("mnb-go-on", (event) => askForSocket(event), listening);
        for (const name of ["pointerenter", "focusin"]) box.addEventListener(name, back, listening);
      }
      if (now === on && !elsewhere) return;
      on = now;
      side.hidden = tools.hidden = !on;
      unkey();
      // Keys typed in the parts stop at `el`; the graph is its sibling.
      const ends = [cells.el, box].flatMap((element) => (on && element ? designKeys(element, send) : []));
      unkey = () => ends.forEach((end) => end());
      update(last);
    },
    destroy() {
      listening.abort();
      unkey();
      for (const part of parts) part.destroy?.();
    },
  };
}
