/** A row of tabs: one is open, arrows go from one to the next. */
import { h, clear, setAttr } from "./dom.js";

let tabsMade = 0;

/**
 * @param {string} label what the tabs are of
 * @param {(name: string) => void} pick
 */
export function tabRow(label, pick) {
  const mine = `mnb-tabs-${++tabsMade}`;
  const row = h("div", { class: "mnb-tabs", role: "tablist", "aria-label": label });
  const panel = h("div", { class: "mnb-tabpanel", role: "tabpanel", id: `${mine}-panel`, tabindex: "-1" });
  let told = "";
  row.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    const all = [...row.children];
    const next = all[(all.indexOf(document.activeElement) + by + all.length) % all.length];
    next?.focus();
    next?.click();
  });
  return {
    row,
    panel,
    /** @param {Array<[string, string, boolean]>} tabs name, words, whether something waits there */
    update(tabs, open) {
      const now = JSON.stringify(tabs);
      if (now !== told) {
        told = now;
        const focused = row.contains(document.activeElement) ? document.activeElement.dataset.name : null;
        clear(row).append(...tabs.map(([name, words, dot]) => h("button", { type: "button", role: "tab", class: "mnb-tab", id: `${mine}-${name}`, "data-name": name, "aria-controls": panel.id, onclick: () => pick(name) },
          words, dot && h("span", { class: "mnb-dot", title: "waits for you" }, " ●"))));
        if (focused) [...row.children].find((one) => one.dataset.name === focused)?.focus();
      }
      for (const one of row.children) {
        const is = one.dataset.name === open;
        setAttr(one, "aria-selected", String(is));
        setAttr(one, "tabindex", is ? "0" : "-1");
        if (is) setAttr(panel, "aria-labelledby", one.id);
      }
    },
  };
}
