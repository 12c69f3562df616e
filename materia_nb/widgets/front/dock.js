/** The dock below the graph: one tab per part that the kernel provides, such as timeline, items and comparison. */
import { h, button, isNew, redraw } from "./dom.js";
import { tabRow } from "./tabs.js";
import { drawBlocks } from "./blocks.js";
import { BODIES } from "./bodies.js";

/** A read-only part made of blocks. @param {HTMLElement} host @param {PanelSender} send @returns {Part} */
function readPart(host, send) {
  host.classList.add("mnb-dockread");
  host.setAttribute("tabindex", "0");
  return { update: (data) => drawBlocks(host, data.blocks, send) };
}

/** @param {HTMLElement} host @param {PanelSender} send @param {string[]} names of its parts, in the order of the tabs */
export function dockPart(host, send, names) {
  const tabs = tabRow("timeline and items", (dock) => send("dock", { dock }));
  const casts = h("span", { class: "mnb-row", role: "group", "aria-label": "casts of this panel" });
  // In design mode the problems replace all tabs.
  const problems = h("div", { class: "mnb-dockbody" });
  const makers = /** @type {Record<string, (host: HTMLElement, send: PanelSender, controls: HTMLElement) => Part>} */ (/** @type {unknown} */ (BODIES));
  const all = names.map((name) => {
    const body = h("div", { class: "mnb-dockbody" }), controls = h("span", { class: "mnb-row mnb-nowrap" });
    return { name, body, controls, part: (makers[name] ?? readPart)(body, send, controls) };
  });
  tabs.panel.append(...all.map((part) => part.body), problems);
  host.append(h("div", { class: "mnb-dockhead" }, tabs.row, casts, h("span", { class: "mnb-dockright" }, all.map((part) => part.controls))), tabs.panel);
  return {
    parts: all,
    problems,
    /** @param {{mode?: string, alone?: string, casts?: string[], cast?: number, dock?: string, tabs?: [string, string][]}} data */
    surface(data) {
      const designing = data.mode === "design", open = data.dock && names.includes(data.dock) ? data.dock : names[0];
      tabs.row.hidden = Boolean(data.alone) || designing;
      const shows = (/** @type {string} */ label, /** @type {number} */ index) =>
        button(label, `show ${label} in this panel`, () => send("show_cast", { cast: index }), { class: "mnb-b mnb-small", "aria-pressed": String(index === data.cast) });
      const several = data.casts && data.casts.length > 1 ? data.casts : [];
      if (isNew(casts, [several, data.cast])) redraw(casts, () => several.map(shows));
      tabs.update((data.tabs ?? []).map(([name, label]) => [name, label]), open);
      problems.hidden = !designing;
      for (const part of all) part.body.hidden = part.controls.hidden = designing || part.name !== open;
    },
  };
}
