/** A row of tabs; the arrow keys move between them. */
import { h, isNew, redraw, onKeys, neighbour, setAttr } from "./dom.js";

let rowCount = 0;

/** @param {string} label the label of the tab list @param {(name: string) => void} pick @param {string} [style] `mnb-d-` in design mode */
export function tabRow(label, pick, style = "mnb-") {
  const mine = `mnb-tabs-${++rowCount}`;
  const row = h("div", { class: `${style}tabs`, role: "tablist", "aria-label": label });
  const panel = h("div", { class: "mnb-tabpanel", role: "tabpanel", id: `${mine}-panel`, tabindex: "-1" });
  const tabs = () => [...row.querySelectorAll("button")];
  const go = (/** @type {number} */ by) => {
    const name = neighbour(tabs(), by)?.dataset.tab;
    tabs().find((tab) => tab.dataset.tab === name)?.click();
    tabs().find((tab) => tab.dataset.tab === name)?.focus();
  };
  onKeys(row, { ArrowRight: () => go(1), ArrowLeft: () => go(-1) });
  return {
    row,
    panel,
    /** @param {[name: string, words: string, waits?: boolean][]} all true if the tab waits for the user @param {string} open */
    update(all, open) {
      const dot = () => h("span", { class: "mnb-dot", title: "waiting for you" }, " ●");
      const tab = (/** @type {string} */ name, /** @type {string} */ caption, waits = false) =>
        h("button", { type: "button", role: "tab", class: `${style}tab`, id: `${mine}-${name}`, "data-tab": name, "aria-controls": panel.id, onclick: () => pick(name) }, caption, waits && dot());
      if (isNew(row, all)) redraw(row, () => all.map((entry) => tab(...entry)));
      for (const tabNode of tabs()) {
        const is = tabNode.dataset.tab === open;
        setAttr(tabNode, "aria-selected", String(is));
        setAttr(tabNode, "tabindex", is ? "0" : "-1");
        if (is) setAttr(panel, "aria-labelledby", tabNode.id);
      }
    },
  };
}
