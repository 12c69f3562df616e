/** All casts of a project: a searchable, sortable, filterable list, and the actions for the selected cast. */
import { h, askLine, button, drawNotice, isNew, onKeys, refill, setAttr, setEnabled, setText, icon } from "./dom.js";
import { drawBlocks } from "./blocks.js";
import { makeGrid } from "./grid.js";
import { closeMenu, openMenu } from "./menu.js";
import { makeTalk, markWhenGone } from "./wire.js";

/** Number of rows per request. */
const PORTION = 200;
const TEMPLATE = "92px minmax(150px,3fr) minmax(90px,1.3fr) 124px 48px minmax(60px,1.6fr) 72px";
/** The columns: label, true if the list can be sorted by the column, and class. @type {[name: string, sorts: boolean, look?: string][]} */
const COLUMNS = [["state", true], ["request", true], ["loadout", true], ["when", true], ["steps", true, "mnb-r"], ["warnings", false], ["cost", true, "mnb-r"]];
/** @type {[name: string, words: string][]} */
const CHIPS = [["all", "All"], ["waits", "Waits"], ["failed", "Failed"], ["tagged", "Tagged"]];
/** @type {Record<string, Parameters<typeof icon>[0]>} */
const SIGNS = { wants: "person", failed: "warning", paused: "pause", aborted: "abort", done: "check", working: "clock" };

/** Return the sort direction after a click on a column head: first the more useful direction, then the opposite. @param {{by?: string, down?: boolean}} look @param {string} by */
export const sortedBy = (look, by) => (look.by === by ? !look.down : ["when", "steps", "cost"].includes(by));

/** @typedef {[id: string, stands: [string, string, string], name: string, request: string, tags: string[], loadout: string, when: [string, string], steps: string, warnings: string, cost: string, identity: string]} CastRow */

/** @param {{model: Model, el: HTMLElement}} props */
export function castsView({ model, el }) {
  const send = /** @type {import("./messages.js").Send<import("./messages.js").ToCasts> & {ask(kind: string, values?: Data): Promise<Data>}} */ (makeTalk(model));
  /** @type {Data} */
  let data = {};
  /** @type {Map<number, CastRow>} */
  let rows = new Map();
  let requested = new Set(), typing = 0, lookedAt = 0, /** @type {string|undefined} */ chosen;
  const look = (/** @type {Data} */ changed) => send("look", { text: field.value, only: data.only, by: data.by, down: data.down, ...changed });
  const field = h("input", { class: "mnb-in mnb-find", type: "search", placeholder: "find: words, loadout:…, tag:…", "aria-label": "find casts by name, request, loadout or tag", oninput: () => {
    clearTimeout(typing);
    typing = setTimeout(() => look({}), 150);
  } });
  const chips = CHIPS.map(([only, caption]) => ({ only, caption, node: button(caption, `show ${only === "all" ? "all casts" : `only: ${caption.toLowerCase()}`}`, () => look({ only }), { class: "mnb-b mnb-quiet" }) }));
  const reading = h("span", { class: "mnb-dim", role: "status" }), cost = h("span", { class: "mnb-counts" });
  const head = h("div", { class: "mnb-bar", role: "toolbar", "aria-label": "which casts" }, field, chips.map((chip) => chip.node), h("span", { class: "mnb-space" }), reading, cost,
    button("⟲", "refresh the list of casts", () => send("refresh"), { class: "mnb-b mnb-quiet", "aria-label": "refresh the list of casts" }));
  const heads = COLUMNS.map(([by, sorts, class_ = ""]) => ({ by, node: sorts ? button(by, `sort by ${by}`, () => look({ by, down: sortedBy(data, by) }), { class: "mnb-x" }) : by, class: class_ }));
  const notice = h("div", { class: "mnb-notice", hidden: true }), line = h("div", { class: "mnb-line", hidden: true });
  const grid = makeGrid({
    label: "casts", height: 28, template: TEMPLATE,
    columns: heads.map(({ node, class: class_ }) => ({ name: node, class: class_ })),
    cells: (index) => cells(index),
    pick: (index) => pick(index),
    menu: (index, at) => (pick(index), openMenu(at, entries(), { label: "this cast" })),
  });
  /** Return the selected cast; null until the kernel has confirmed it, because buttons would act on another cast. */
  const picked = () => (data.picked?.id === chosen ? data.picked : null);
  const aboutPicked = () => ({ cast: picked().id, identity: picked().identity });
  const castName = h("strong", { class: "mnb-cut" });
  const open = button("Open", "show it below, read-only", () => send("open", aboutPicked()), { class: "mnb-b mnb-main" });
  const resume = button("Resume", "show it below, to continue it", () => send("resume", aboutPicked()));
  const fork = button("Fork", "fork the cast at its current state, and show the fork below", () => send("fork", aboutPicked()));
  const compare = button("Compare…", "compare with another cast", () => choose());
  const label = button("Label…", "set its name and tags", () => askLabel());
  const remove = button("Delete…", "delete it from disk after a confirmation", () => askDelete(), { class: "mnb-b mnb-bad" });
  const foot = h("div", { class: "mnb-bar mnb-castfoot", role: "toolbar", "aria-label": "actions for this cast" }, castName, h("span", { class: "mnb-space" }), open, resume, fork, compare, label, remove);
  const left = h("div", {}), right = h("div", {});
  const glance = h("div", { class: "mnb-glance", tabindex: "0", role: "region", "aria-label": "the selected cast" }, left, right);
  const compared = h("div", { class: "mnb-compared", tabindex: "0", role: "region", "aria-label": "differences between the casts" });
  const below = h("div", { class: "mnb-row mnb-below" });
  const kernelGone = h("div", { class: "mnb-gone", role: "alert" }, "The kernel of this list is no longer running. Run its cell again.");
  const front = h("div", { class: "mnb-front", "data-lm-suppress-shortcuts": "true", onkeydown: (event) => event.stopPropagation() }, head, grid.node, notice, foot, glance, compared, below, kernelGone, line);
  el.classList.add("mnb-surface", "mnb-casts");
  setAttr(el, "data-lm-suppress-shortcuts", "true");
  el.append(front);
  markWhenGone(model, el);

  const pick = (/** @type {number} */ index) => {
    const row = rows.get(index);
    if (!row || row[0] === chosen) return;
    chosen = row[0];
    enableActions();
    send("select", { cast: chosen });
  };
  const entries = () => {
    const { resumes, forks } = picked() ?? {}, possible = [open, ...(resumes ? [resume] : []), ...(forks ? [fork] : []), compare, label, remove];
    return possible.map((node) => ({ words: node.textContent ?? "", act: () => node.click(), tone: node === remove ? "bad" : undefined }));
  };
  const choose = () => {
    const { id, identity } = picked(), others = [...rows.values()].filter((row) => row[0] !== id).slice(0, 200);
    openMenu(compare, others.map((row) => ({ words: `${row[2] || row[3]} · ${row[5]} · ${row[6][0]}`, act: () => send("compare", { a: id, b: row[0], identities: [identity, row[10]] }) })), { label: "compare with", searchable: true });
  };
  const askLabel = () => {
    const { name } = picked(), about = aboutPicked();
    askLine(line, { words: "name, and #tags", value: name }, (text) => text && send("label", { ...about, text }));
  };
  const askDelete = () => {
    const { words: name } = picked(), about = aboutPicked();
    openMenu(remove, [{ words: `Delete “${name}” from the disk? A deleted cast cannot be restored.` }, { words: "Delete it", tone: "bad", act: () => send("delete", about) }, { words: "Keep it", act: () => {} }]);
  };
  /** Request the portion of rows around an index, each portion once. @param {number} index */
  const fetchRows = async (index) => {
    const first = Math.floor(index / PORTION) * PORTION, order = data.order;
    if (index < 0 || index >= (data.total ?? 0) || requested.has(first)) return;
    requested.add(first);
    const answer = await send.ask("rows", { order, first, last: first + PORTION });
    if (answer.order !== data.order) return;
    /** @type {CastRow[]} */ (answer.rows).forEach((row, offset) => rows.set(answer.first + offset, row));
    grid.draw();
  };
  const cells = (/** @type {number} */ index) => {
    const row = rows.get(index);
    for (const near of [index, index + PORTION / 2, index - PORTION / 2]) if (!rows.has(near)) fetchRows(near);
    if (!row) return { cells: ["…", "", "", "", "", "", ""], key: `? ${index}` };
    const [id, [tone, word, more], name, request, tags, loadout, [when, exactly], steps, warnings, price] = row;
    return {
      cells: [
        h("span", { class: `mnb-stands mnb-tone-${tone}`, title: more || word }, icon(SIGNS[tone] ?? "more", 14), ` ${word}`),
        h("span", { title: `${request}\n${id}` }, name && [h("strong", {}, name), " "], h("span", { class: name ? "mnb-dim" : "" }, request || "no request"), tags.map((tag) => h("span", { class: "mnb-mark" }, tag))),
        loadout, h("span", { title: exactly }, when), steps, h("span", { class: "mnb-dim", title: warnings }, warnings), price || h("span", { class: "mnb-dim", title: "cost not reported" }, "–"),
      ],
      class: id === data.below ? "mnb-here" : "",
      key: JSON.stringify([row, id === data.below]),
    };
  };

  onKeys(grid.node, { Enter: (event) => (event.target === grid.node && picked() ? open.click() : false), Delete: () => picked() && askDelete() });
  el.addEventListener("pointerenter", () => {
    if (Date.now() - lookedAt > 5000) send("refresh");
    lookedAt = Date.now();
  });

  const drawGlance = () => {
    const glanceData = model.get("glance") ?? {};
    if (glanceData.id === picked()?.id) glanceData.sides?.forEach((/** @type {Blocks} */ side, /** @type {number} */ index) => drawBlocks([left, right][index], side, send));
  };
  const enableActions = () => {
    const cast = picked();
    for (const node of [open, compare, label]) setEnabled(node, Boolean(cast?.whole), cast ? "the cast cannot be read" : "select a cast first");
    setEnabled(resume, Boolean(cast?.resumes), cast ? cast.why : "select a cast first");
    setEnabled(fork, Boolean(cast?.forks), cast ? "its journal cannot be read" : "select a cast first");
    setEnabled(remove, Boolean(cast), "select a cast first");
    open.classList.toggle("mnb-main", Boolean(cast?.whole));
  };
  const update = () => {
    const now = model.get("casts") ?? {};
    if (now.order !== data.order) {
      rows = new Map();
      requested = new Set();
    }
    data = now;
    chosen = now.picked?.id;
    /** @type {CastRow[]} */ (now.rows ?? []).forEach((row, index) => rows.set(index, row));
    for (const { only, caption, node } of chips) {
      setText(node, `${caption} ${(now.counts?.[only] ?? 0).toLocaleString("en")}`);
      setAttr(node, "aria-pressed", String(only === now.only));
    }
    heads.forEach(({ by, node }) => {
      if (!(node instanceof HTMLElement)) return;
      const sorts = by === now.by;
      setAttr(node.closest("[role=columnheader]") ?? node, "aria-sort", sorts ? (now.down ? "descending" : "ascending") : null);
      setText(node, `${by}${sorts ? (now.down ? " ▾" : " ▴") : ""}`);
    });
    setText(reading, now.reading ?? "");
    setText(cost, now.cost ?? "");
    setText(castName, picked()?.words ?? "choose a cast");
    enableActions();
    compared.hidden = !now.compared?.length;
    drawBlocks(compared, now.compared, send);
    glance.hidden = Boolean(now.below) || !compared.hidden || !picked();
    drawGlance();
    setAttr(el, "data-whole", now.below ? null : "yes");
    below.hidden = !now.below && compared.hidden;
    if (isNew(below, [now.below, compared.hidden])) refill(below, button("Close", "close the view below the list", () => send("close_selected"), { class: "mnb-b mnb-small" }));
    drawNotice(notice, now.notice, () => send("dismiss"));
    setAttr(grid.node, "data-empty", now.reading ? "…" : "no matching casts");
    grid.active = now.at ?? -1;
    grid.update(now.total ?? 0);
  };
  model.on("change:casts", update);
  model.on("change:glance", drawGlance);
  update();
  return () => {
    model.off("change:casts", update);
    model.off("change:glance", drawGlance);
    clearTimeout(typing);
    closeMenu();
    grid.destroy();
    el.replaceChildren();
  };
}
