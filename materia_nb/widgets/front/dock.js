/** The dock below the graph: a tab for each part that the kernel has for it, such as timeline, items, and two casts side by side. */
import { h, clear, button } from "./dom.js";
import { tabRow } from "./tabs.js";
import { drawBlocks } from "./blocks.js";
import { BODIES } from "./bodies.js";

/** What is only to be read. */
function readPart(host, send) {
  host.classList.add("mnb-dockread");
  host.setAttribute("tabindex", "0");
  return { update: (data) => drawBlocks(host, data.blocks, send) };
}

/**
 * @param {HTMLElement} host
 * @param {(kind: string, values?: object) => void} send
 * @param {string[]} names of its parts, in the order of the tabs
 */
export function dockPart(host, send, names) {
  const tabs = tabRow("timeline and items", (dock) => send("dock", { dock }));
  const casts = h("span", { class: "mnb-row", role: "group", "aria-label": "casts of this panel" });
  const right = h("span", { class: "mnb-dockright" });
  host.append(h("div", { class: "mnb-dockhead" }, tabs.row, casts, right), tabs.panel);
  const made = {}, bodies = {}, controls = {};
  for (const name of names) {
    right.append((controls[name] = h("span", { class: "mnb-row mnb-nowrap" })));
    tabs.panel.append((bodies[name] = h("div", { class: "mnb-dockbody" })));
    made[name] = (BODIES[name] || readPart)(bodies[name], send, controls[name]);
  }
  // What a design has wrong stands in place of them all.
  const problems = h("div", { class: "mnb-dockbody" });
  tabs.panel.append(problems);
  let madeCasts = "";
  return {
    made,
    problems,
    surface(data) {
      const designing = data.mode === "design", all = data.casts || [];
      tabs.row.hidden = Boolean(data.alone) || designing;
      const wanted = JSON.stringify([data.casts, data.cast]);
      if (wanted !== madeCasts) {
        madeCasts = wanted;
        clear(casts);
        if (all.length > 1) casts.append(...all.map((words, place) => button(words, `show ${words} in this panel`, () => send("show_cast", { cast: place }), { class: "mnb-b mnb-small", "aria-pressed": String(place === data.cast) })));
      }
      const open = names.includes(data.dock) ? data.dock : names[0];
      tabs.update((data.tabs || []).map(([name, words]) => [name, words, false]), open);
      problems.hidden = !designing;
      for (const name of names) bodies[name].hidden = controls[name].hidden = designing || name !== open;
    },
  };
}
