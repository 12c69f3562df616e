/** The dock of design mode: what is wrong, with a button that mends it; what can happen; what was changed. */
import { h, button, setText } from "./dom.js";
import { designFlush } from "./design_bar.js";

/**
 * @param {HTMLElement} host
 * @param {(kind: string, values?: object) => void} send
 */
export function problemsPart(host, send) {
  const act = (kind, values = {}) => {
    designFlush(host);
    send(kind, values);
  };
  const names = ["problems", "happens", "changes"];
  const tabs = h("div", { class: "mnb-d-tabs", role: "tablist", "aria-label": "of the design" });
  const panel = h("div", { class: "mnb-d-dockbody", role: "tabpanel", tabindex: "0" });
  host.append(h("div", { class: "mnb-d-dock" }, tabs, panel));
  let open = "problems";
  let data = null;
  let drawn = "";
  const buttons = names.map((name) => {
    const made = h("button", { type: "button", role: "tab", class: "mnb-d-tab" });
    made.addEventListener("click", () => {
      open = name;
      drawn = "";
      draw();
    });
    tabs.append(made);
    return made;
  });
  tabs.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    const next = buttons[(names.indexOf(open) + by + names.length) % names.length];
    next.click();
    next.focus();
  });
  const pick = (what) => what && act("pick", { what, keep: true });
  const cell = (...children) => h("td", {}, ...children);
  const table = (heads, rows) => h("table", { class: "mnb-d-table" }, h("thead", {}, h("tr", {}, heads.map((one) => h("th", { scope: "col" }, one)))), h("tbody", {}, rows));

  const problems = () => {
    if (!data.problems.length) return h("p", { class: "mnb-d-note", role: "status" }, "✓ no problems, no hints");
    return table(["kind", "where", "what", "what to do", "mend"], data.problems.map((one) =>
      h("tr", { "data-tone": one.severity === "problem" ? "bad" : "hint" },
        cell(one.severity === "problem" ? "✖ problem" : "○ hint"),
        cell(one.pick ? button(one.where, "select it", () => pick(one.pick), { class: "mnb-d-link" }) : one.where),
        cell(one.what),
        cell(one.todo),
        cell(one.mend ? button("Do it", one.mend, () => act("mend", { code: one.code, source: one.source }), { class: "mnb-b mnb-small", "aria-label": `Do it: ${one.mend}` }) : null, one.mend ? h("span", { class: "mnb-dim mnb-d-mends" }, one.mend) : null))));
  };
  const happens = () => {
    const found = data.happens;
    const again = button(found ? "Explore again" : "Explore", "look at every way that a cast can go; nobody is asked", () => act("explore"), { class: "mnb-b mnb-main" });
    if (!found) return h("div", { class: "mnb-d-note" }, again, h("span", { class: "mnb-dim" }, " every way that a cast can go, before anybody is asked: can it end, fail, get stuck; what is never taken"));
    const rows = found.rows.map((one) =>
      h("tr", { "data-tone": { ends: "good", fails: "bad", never: "hint" }[one.sign] },
        cell(`${{ ends: "✓", fails: "✗", never: "○" }[one.sign]} ${one.what}`),
        cell(one.pick ? button(one.about, "select it", () => pick(one.pick), { class: "mnb-d-link" }) : one.about),
        cell(one.witness ? button("witness", "the shortest way in which it happens", () => act("witness", { what: one.witness }), { class: "mnb-b mnb-small", "aria-label": `witness: ${one.what}` }) : null)));
    return h("div", {},
      h("div", { class: "mnb-d-note" }, found.stale ? h("b", { class: "mnb-d-stale" }, "The design has changed since. ") : null, again, h("span", { class: "mnb-dim" }, ` ${found.states.toLocaleString("en")} states with lists of 0 to 3${found.whole ? "" : "; stopped early: what was not seen is not known"}`)),
      ...found.notes.map((one) => h("p", { class: "mnb-dim mnb-d-note" }, one)),
      found.route.length ? h("p", { class: "mnb-d-note", role: "status" }, "shortest way: ", found.route.map((one, place) => [place ? " → " : "", button(one, "select it", () => pick(["socket", one]), { class: "mnb-d-link" })])) : null,
      table(["it", "how", "show"], rows));
  };
  const changes = () => {
    const { steps, undone, unsaved, more } = data.changes;
    return h("div", { class: "mnb-d-columns" },
      h("div", {}, h("div", { class: "mnb-d-label" }, "not saved"),
        unsaved.length ? table(["done", "where", "what"], unsaved.map((one) => h("tr", {}, cell(one.verb), cell(h("code", {}, one.where)), cell(h("code", {}, one.about))))) : h("p", { class: "mnb-dim" }, "nothing"),
        more ? h("p", { class: "mnb-dim" }, `and ${more} more`) : null),
      h("div", {}, h("div", { class: "mnb-d-label" }, "steps, the last one first"),
        h("ol", { class: "mnb-d-steps" }, undone.slice().reverse().map((one) => h("li", { class: "mnb-d-undone" }, `undone: ${one}`)), steps.map((one) => h("li", {}, one))), steps.length || undone.length ? null : h("p", { class: "mnb-dim" }, "none yet")));
  };

  const draw = () => {
    const count = data.problems.length;
    const titles = { problems: `Problems ${count}`, happens: "What can happen", changes: `Changes ${data.changes.unsaved.length + data.changes.more}` };
    names.forEach((name, place) => {
      setText(buttons[place], titles[name]);
      buttons[place].setAttribute("aria-selected", name === open ? "true" : "false");
      buttons[place].tabIndex = name === open ? 0 : -1;
    });
    const now = JSON.stringify([open, data[open]]);
    if (now === drawn) return;
    drawn = now;
    const held = panel.contains(document.activeElement) && document.activeElement !== panel ? document.activeElement.getAttribute("aria-label") || document.activeElement.textContent : null;
    const top = panel.scrollTop;
    panel.setAttribute("aria-label", titles[open]);
    panel.replaceChildren({ problems, happens, changes }[open]());
    panel.scrollTop = top;
    if (held !== null) {
      const same = [...panel.querySelectorAll("button")].find((one) => (one.getAttribute("aria-label") || one.textContent) === held);
      (same || panel).focus({ preventScroll: true });
    }
  };
  return {
    update(slice) {
      if (!slice.dock) return;
      data = slice.dock;
      draw();
    },
    destroy() {
      host.replaceChildren();
    },
  };
}
