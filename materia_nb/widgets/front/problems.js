/** The dock of design mode: problems with fixes, exploration results, and changes. */
import { h, button, isNew, redraw, refill, setAttr, icon } from "./dom.js";
import { drawBlocks } from "./blocks.js";
import { afterForms } from "./design_bar.js";
import { tabRow } from "./tabs.js";

const SIGNS = { ends: { sign: "✓", tone: "good" }, fails: { sign: "✗", tone: "bad" }, never: { sign: "○", tone: "hint" } };

/** @param {HTMLElement} host @param {SendToDesigner} send @returns {Part & {open: OpenDock}} */
export function problemsPart(host, send) {
  const act = afterForms(host, send), note = { class: "mnb-d-note" }, dim = { class: "mnb-dim" };
  /** @type {Dock} */
  let data = { problems: [], happens: null, changes: { steps: [], undone: [], unsaved: [], more: 0, compared: [] } };
  /** @type {"problems"|"happens"|"changes"} */
  let open = "problems";
  const tabs = tabRow("of the design", (name) => {
    open = /** @type {typeof open} */ (name);
    fold(false);
    draw();
  }, "mnb-d-");
  /** @type {boolean|null} true if the dock is collapsed, as it is initially unless a socket has a problem */
  let folded = null;
  const folds = button("", "", () => fold(!folded), { class: "mnb-b mnb-quiet" });
  const fold = (/** @type {boolean} */ now) => {
    folded = now;
    host.closest(".mnb-surface")?.setAttribute("data-low", now ? "row" : "");
    const label = now ? "show the content of the tabs" : "show only the tabs";
    refill(folds, icon(now ? "unfold" : "fold"));
    for (const name of ["title", "aria-label"]) setAttr(folds, name, label);
    setAttr(folds, "aria-expanded", String(!now));
  };
  const panel = tabs.panel;
  panel.className = "mnb-d-dockbody";
  panel.tabIndex = 0;
  host.append(h("div", { class: "mnb-d-dock" }, h("div", { class: "mnb-d-dockhead" }, tabs.row, folds), panel));
  const picks = (/** @type {string} */ label, /** @type {What|undefined} */ part, path = "it") => (part ? button(label, `select ${path}`, () => act("pick", { part, keep: true }), { class: "mnb-d-link" }) : label);
  const cell = (/** @type {Child[]} */ ...children) => h("td", {}, ...children);
  const table = (/** @type {string[]} */ heads, /** @type {Child[]} */ rows) => h("table", { class: "mnb-d-table" }, h("thead", {}, h("tr", {}, heads.map((heading) => h("th", { scope: "col" }, heading)))), h("tbody", {}, rows));

  const problems = () => !data.problems.length ? h("p", { ...note, role: "status" }, "✓ no problems, no hints")
    : table(["kind", "where", "what", "what to do", "fix"], data.problems.map(({ severity, where, what: message, todo, fix, pick, code, source }) => h("tr", { "data-tone": severity === "problem" ? "bad" : "hint" },
      cell(severity === "problem" ? "✖ problem" : "○ hint"), cell(picks(where, pick, source)), cell(message), cell(todo),
      cell(fix && [button("Fix it", fix, () => act("fix", { code, source }), { class: "mnb-b mnb-small", "aria-label": `Fix it: ${fix}` }), h("span", { class: "mnb-dim mnb-d-fixes" }, fix)]))));
  const words = ["reach", "without", "since"], selects = words.map((word) => h("select", { "aria-label": word }));
  const bypass = (/** @type {Record<string, string>} */ names, /** @type {Outcomes["proof"]} */ proof) => {
    const options = () => Object.entries(names).map(([value, label]) => h("option", { value }, label));
    selects.forEach((select, index) => isNew(select, names) && refill(select, index > 0 && h("option", { value: "" }, index === 1 ? "anything" : "the start"), options()));
    const ask = () => act("witness", { outcome: selects[0].value, without: selects[1].value || null, since: selects[2].value || null });
    return [
      h("div", note, "Can a cast", selects.map((select, index) => [` ${words[index]} `, select]), " ? ", button("Ask", "search for the shortest such cast, or prove that there is none", ask)),
      proof && h("p", { ...note, role: "status" }, `✓ Proven: ${proof[0]}. To keep this as a rule of the saved tests: `, h("code", {}, proof[1])),
    ];
  };
  const happens = () => {
    const explored = data.happens;
    const exploreButton = button(explored ? "Explore again" : "Explore", "explore every route that a cast can take, without calling an agent", () => act("explore"));
    if (!explored) return h("div", note, exploreButton, h("span", dim, " every route that a cast can take, without calling an agent. This shows whether a cast can end, fail or get stuck, and which edges are never taken"));
    const { rows, notes, route, proof, names, states, whole: isComplete, stale } = explored;
    return h("div", {},
      h("div", note, stale && h("b", { class: "mnb-d-stale" }, "The design has changed since this search. "), exploreButton, h("span", dim, ` ${states.toLocaleString("en")} states with lists of 0 to 3${isComplete ? "" : "; stopped early: other states are unknown"}`)),
      notes.map((noteText) => h("p", { class: "mnb-dim mnb-d-note" }, noteText)),
      bypass(names, proof),
      route.length > 0 && h("p", { ...note, role: "status" }, "shortest route: ", route.map((socket, index) => [index ? " → " : "", picks(names[socket] ?? socket, ["socket", socket])])),
      table(["outcome", "details", "example"], rows.map(({ sign, what: outcome, about, pick, witness }) => h("tr", { "data-tone": SIGNS[sign].tone },
        cell(`${SIGNS[sign].sign} ${outcome}`), cell(picks(about, pick)),
        cell(witness && button("example", "show the shortest run with this outcome", () => act("witness", { outcome: witness }), { class: "mnb-b mnb-small", "aria-label": `example: ${outcome}` }))))));
  };
  const changes = () => {
    const { steps, undone, unsaved, more, compared } = data.changes, label = { class: "mnb-d-label" }, effect = h("div", {});
    drawBlocks(effect, compared, act);
    return h("div", { class: "mnb-d-columns" },
      h("div", { class: "mnb-d-effect" }, button("What do my changes change?", "compare all possible casts of the saved loadout with those of this design, without calling an agent", () => act("compare")), effect),
      h("div", {}, h("div", label, "not saved"),
        unsaved.length ? table(["done", "where", "what"], unsaved.map((change) => h("tr", {}, cell(change.verb), cell(h("code", {}, change.where)), cell(h("code", {}, change.about))))) : h("p", dim, "nothing"),
        more > 0 && h("p", dim, `and ${more} more`)),
      h("div", {}, h("div", label, "steps, latest first"),
        h("ol", { class: "mnb-d-steps" }, undone.toReversed().map((step) => h("li", { class: "mnb-d-undone" }, `undone: ${step}`)), steps.map((step) => h("li", {}, step))), !steps.length && !undone.length && h("p", dim, "none yet")));
  };
  const draw = () => {
    const hints = data.problems.filter((problem) => problem.severity === "hint").length, wrong = data.problems.length - hints;
    const titles = { problems: wrong || !hints ? `Problems ${wrong}` : `Hints ${hints}`, happens: "What can happen", changes: `Changes ${data.changes.unsaved.length + data.changes.more}` };
    tabs.update(Object.entries(titles), open);
    if (!isNew(panel, [open, data[open]])) return;
    const top = panel.scrollTop;
    setAttr(panel, "aria-label", titles[open]);
    redraw(panel, () => ({ problems, happens, changes })[open](), panel);
    panel.scrollTop = top;
  };
  return {
    /** @param {{dock?: Dock}} slice */
    update({ dock }) {
      if (!dock) return;
      data = dock;
      if (folded === null) fold(!data.problems.some(({ severity, source }) => severity === "problem" && source !== "sockets"));
      draw();
    },
    /** Show a tab; with a severity, select the part of the first such finding, and move the focus to its row. */
    open(tab, severity) {
      open = tab;
      fold(false);
      draw();
      if (!severity) return;
      const index = data.problems.findIndex((finding) => finding.severity === severity), where = panel.querySelectorAll("tbody tr")[index]?.querySelector("button");
      where?.click();
      (where ?? panel).focus();
    },
    destroy: () => host.replaceChildren(),
  };
}
