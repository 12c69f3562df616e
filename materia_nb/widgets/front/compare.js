/** Two casts side by side: the steps of both in rows, the first difference marked. */
import { h, clear } from "./dom.js";
import { drawBlocks } from "./blocks.js";

export function comparePart(host, send) {
  host.classList.add("mnb-dockread");
  host.setAttribute("tabindex", "0");
  let told = "";
  return {
    update(data) {
      const now = JSON.stringify(data);
      if (now === told) return;
      told = now;
      const rows = (data.pairs || []).map((one) => h("tr", { class: one.first ? "mnb-first" : "" }, [one.number ?? "", one.a, one.b, (one.first ? "◀ first difference " : "") + one.what].map((cell) => h("td", {}, String(cell)))));
      const notes = h("div", {});
      drawBlocks(notes, data.blocks || [], send);
      clear(host).append(h("div", { class: "mnb-side" }, h("table", { class: "mnb-table" }, h("thead", {}, h("tr", {}, ["step", ...(data.names || ["", ""]), "differs"].map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, rows)), notes));
      host.querySelector(".mnb-first")?.scrollIntoView({ block: "nearest" });
    },
  };
}
