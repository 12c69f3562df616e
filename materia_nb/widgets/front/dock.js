/** The dock below the graph: timeline, items, events, and two casts side by side. */
import { h, clear, setAttr, button } from "./dom.js";
import { tabRow } from "./tabs.js";
import { drawBlocks } from "./blocks.js";
import { timelinePart } from "./timeline.js";
import { itemsPart } from "./items.js";
import { comparePart } from "./compare.js";

export function dockPart(host, send) {
  const tabs = tabRow("timeline and items", (dock) => send("dock", { dock }));
  const casts = h("span", { class: "mnb-row", role: "group", "aria-label": "casts of this panel" });
  const controls = {}, bodies = {};
  const right = h("span", { class: "mnb-dockright" });
  host.append(h("div", { class: "mnb-dockhead" }, tabs.row, casts, right), tabs.panel);
  for (const name of ["timeline", "items", "events", "compare", "problems"]) {
    right.append((controls[name] = h("span", { class: "mnb-row mnb-nowrap" })));
    tabs.panel.append((bodies[name] = h("div", { class: `mnb-dockbody mnb-dock-${name}` })));
  }
  setAttr(bodies.events, "tabindex", "0");
  const timeline = timelinePart(bodies.timeline, controls.timeline, send);
  const items = itemsPart(bodies.items, controls.items, send);
  const compare = comparePart(bodies.compare, send);
  let counts = { items: "Items", events: 0, casts: 1 }, open = "timeline", madeCasts = "";
  const draw = () => {
    tabs.update([["timeline", "Timeline", false], ["items", counts.items, false], ...(counts.events ? [["events", `Events ${counts.events}`, false]] : []), ...(counts.casts > 1 ? [["compare", "Compare", false]] : [])], open);
    for (const name of Object.keys(bodies)) bodies[name].hidden = controls[name].hidden = name !== open;
  };
  return {
    problems: bodies.problems,
    parts: { timeline, items },
    surface(data) {
      open = data.mode === "design" ? "problems" : data.alone === "items" ? "items" : data.alone === "timeline" ? "timeline" : data.dock || "timeline";
      if (open === "problems" && data.mode !== "design") open = "timeline";
      counts.casts = (data.casts || []).length;
      tabs.row.hidden = Boolean(data.alone) || data.mode === "design";
      const wanted = JSON.stringify([data.casts, data.cast]);
      if (wanted !== madeCasts) {
        madeCasts = wanted;
        clear(casts);
        if (counts.casts > 1) casts.append(...data.casts.map((words, place) => button(words, `show ${words} in this panel`, () => send("show_cast", { cast: place }), { class: "mnb-b mnb-small", "aria-pressed": String(place === data.cast) })));
      }
      draw();
    },
    timelineData(data) {
      timeline.update(data);
      counts.events = (data.events || []).length;
      drawBlocks(bodies.events, [{ is: "table", headers: ["event", "step", "socket", "severity", "type", "message"], rows: (data.events || []).map((row) => row.map(String)).reverse() }], send);
      draw();
    },
    itemsData(data) {
      items.update(data);
      const total = (data.items || []).length + (data.more || 0);
      counts.items = total ? `Items ${Math.min(data.done, total)}/${total}` : "Items";
      draw();
    },
    compareData: (data) => compare.update(data),
    unsent: () => items.unsent(),
    destroy() {
      timeline.destroy();
      items.destroy();
    },
  };
}
