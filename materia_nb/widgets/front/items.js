/** The work items as an editable table: add, move by drag or keys, paste; applied as one change. */
import { actButton, h, button, focused, refill, setText, setAttr, setEnabled, targetOf } from "./dom.js";
import { makeGrid } from "./grid.js";
import { counted, rowsOf } from "./words.js";

const COLUMNS = "22px 62px 132px minmax(110px,1fr) minmax(120px,2fr) 176px";
const HEIGHT = 28;
/** @type {Record<string, string>} */
const SIGNS = { done: "✓", "being worked on": "▸", open: "○", "skipped": "⊘", new: "+", again: "↻", "to be abandoned": "⊘" };

/** Return the state of an item as it would be after Apply. @param {Item} item @param {string[]} states of the cast's items @param {boolean} abandon whether the item being worked on is abandoned */
export function plannedState(item, states, abandon) {
  if (item.origin === null) return "new";
  const how = states[item.origin];
  return item.again ? "again" : how === "being worked on" && abandon ? "to be abandoned" : how;
}

/** Return true if the edited items differ from the items of the cast. @param {Item[]} rows @param {Items["items"]} items */
export const differ = (rows, items) =>
  rows.length !== items.length || rows.some((row, index) => row.again || row.origin !== index || row.title !== items[index][0] || row.context !== items[index][1]);

/** Return the indices of the items with this state that contain this text. @param {Item[]} rows @param {(item: Item) => string} stateOf @param {string} which @param {string} text */
export function matchingIndices(rows, stateOf, which, text) {
  const query = text.trim().toLowerCase();
  const fits = (/** @type {string} */ how) => which === "all" || how === which || (which === "open" && (how === "new" || how === "again"));
  return rows.flatMap((row, index) => (fits(stateOf(row)) && `${row.title} ${row.context} wi-${index + 1}`.toLowerCase().includes(query) ? [index] : []));
}

/** @param {HTMLElement} host @param {PanelSender} send @param {HTMLElement} controls @returns {Part} */
export function itemsPart(host, send, controls) {
  /** @type {Items} */
  let data = { items: [], stands: [], current: null, can: false, base: "" };
  /** @type {Item[]} */
  let rows = [];
  let base = "", changed = false, stale = false, abandon = false, pasted = false, dragging = false, checking = 0, latestCheck = 0;
  /** @type {number[]} the indices of the visible rows */
  let view = [];
  /** @type {Map<string, string>} problems by index and field */
  let issues = new Map();
  /** @type {string[]} the effects that Apply would have */
  let moves = [];
  /** @type {number|null} the index of the item that the user wants to remove */
  let asking = null;
  const summary = h("span", { role: "status" });
  const grid = makeGrid({
    label: "work items",
    height: HEIGHT,
    template: COLUMNS,
    columns: [{ name: "", say: "drag" }, { name: "item" }, { name: "state" }, { name: "title" }, { name: "context" }, { name: "", say: "buttons" }],
    cells: (index) => cells(view[index]),
    fresh: (row, index) => [.../** @type {NodeListOf<HTMLInputElement>} */ (row.querySelectorAll("input[data-field]"))].every((field) => field.value === rows[view[index]]?.[/** @type {ItemField} */ (field.dataset.field)]),
    pick: (index, by) => by === "mouse" && send("select", { element: rows[view[index]]?.origin !== null && !changed ? { kind: "item", id: String(view[index] + 1) } : null }),
  });
  const small = { class: "mnb-b mnb-small" };
  const which = h("select", { class: "mnb-in", "aria-label": "which items", onchange: () => draw() }, ["all", "open", "being worked on", "done", "skipped"].map((value) => h("option", { value }, value)));
  const find = h("input", { class: "mnb-in mnb-find", type: "search", placeholder: "find an item", "aria-label": "find an item", oninput: () => draw() });
  const add = button("Add", "a new item at the end", () => addItem(rows.length), small);
  const currentButton = button("Current", "scroll to the current item", () => data.current !== null && goTo(data.current), small);
  const apply = actButton("Apply", "replace the items of the cast with this list, as a single change", () => send("items", newItems()), { class: "mnb-b mnb-main mnb-small" });
  const revert = button("Revert", "discard these edits and show the items of the cast", () => take(), small);
  const undo = button("Undo", "undo the last edit of the cast", () => send("undo"), small);
  const question = h("div", { class: "mnb-row mnb-ask", role: "alert", hidden: true });
  const problemButton = button("", "go to the first item with a problem", () => showFirstProblem(), { class: "mnb-moves mnb-link mnb-t-bad", hidden: true });
  const preview = h("div", { class: "mnb-moves", role: "status" }), others = h("div", { class: "mnb-moves mnb-t-bad", role: "status" });
  controls.append(summary, which, find, currentButton, add, apply, revert, undo);
  host.append(h("div", { class: "mnb-items" }, question, others, problemButton, preview, grid.node));

  // -- the edited list ----------------------------------------------------------------

  const stateOf = (/** @type {Item} */ item) => plannedState(item, data.stands, abandon);
  const recordedState = (/** @type {Item} */ item) => (item.origin === null ? "" : data.stands[item.origin]);
  /** Return the rows to apply, without new rows that are empty. */
  const filledRows = () => rows.filter((row) => row.origin !== null || row.title.trim() || row.context.trim());
  /** @returns {ToCast["items"]} */
  const newItems = () => ({ rows: filledRows().map((row) => [row.cut?.title ? null : row.title, row.cut?.context ? null : row.context, row.origin, row.again]), base, abandon });
  /** Return the complete title and context of an item, of which the page may have only the beginning. @param {Item} item @returns {Promise<{title: string, context: string}>} */
  const fullTexts = async (item) => {
    if (item.origin === null || !(item.cut?.title || item.cut?.context)) return item;
    const { title, context } = await send.ask("item_texts", { base, index: item.origin });
    return { title: item.cut.title ? title : item.title, context: item.cut.context ? context : item.context };
  };
  const take = () => {
    rows = data.items.map(([title, context, ...cut], origin) => ({ title, context, origin, again: false, cut: { title: cut[0], context: cut[1] } }));
    base = data.base;
    changed = stale = abandon = false;
    moves = [];
    asking = null;
    issues = new Map();
    draw();
  };
  const touched = () => {
    changed = abandon || differ(filledRows(), data.items);
    clearTimeout(checking);
    checking = setTimeout(check, 150);
    draw();
  };
  const check = async () => {
    const mine = ++latestCheck, checked = filledRows(), result = await send.ask("check_items", newItems());
    if (mine !== latestCheck || dragging) return;
    moves = changed ? result.said : [];
    /** @type {number[]|null} the order after Apply; a row that is being typed in keeps its place */
    const order = result.order;
    if (order && checked.length === rows.length && !grid.node.querySelector(".mnb-over-rows") && order.some((from, index) => from !== index)) reorder(order);
    issues = new Map();
    for (const [path, message] of result.issues) {
      const [, index, name = ""] = path.split("."), row = checked[Number(index)];
      issues.set(`${row ? rows.indexOf(row) : index}.${name}`, message);
    }
    draw();
    if (pasted && issues.size) showFirstProblem();
    pasted = false;
  };
  const reorder = (/** @type {number[]} */ order) => {
    const typing = focused(grid.node), at = /** @type {HTMLElement|null|undefined} */ (typing?.closest("[role=row]"))?.dataset.index;
    const item = at === undefined ? null : rows[view[Number(at)]], name = typing?.dataset.field || "title";
    if (item) typing?.blur();
    rows = order.map((from) => rows[from]);
    draw();
    if (item) field(rows.indexOf(item), name)?.focus();
  };
  const toggleAgain = (/** @type {number} */ index) => {
    rows[index].again = !rows[index].again;
    touched();
  };
  const toggleAbandon = () => {
    abandon = !abandon;
    touched();
    grid.node.focus();
  };
  const addItem = (/** @type {number} */ index, title = "", context = "") => {
    rows.splice(index, 0, { title, context, origin: null, again: false });
    showAll();
    touched();
    grid.show(index);
    grid.draw();
    if (!title) field(index)?.focus();
  };
  const move = (/** @type {number} */ index, /** @type {number} */ by) => {
    const to = index + by;
    if (to < 0 || to >= rows.length) return;
    const inField = document.activeElement !== grid.node;
    rows.splice(to, 0, ...rows.splice(index, 1));
    touched();
    if (inField) return field(to)?.focus();
    grid.active = to;
    grid.draw();
  };
  const remove = (/** @type {number} */ index) => {
    if (stateOf(rows[index]) === "being worked on") {
      asking = index;
      draw();
      return question.querySelector("button")?.focus();
    }
    rows.splice(index, 1);
    touched();
    grid.node.focus();
  };

  // -- the table ----------------------------------------------------------------------

  const field = (/** @type {number} */ index, name = "title") => /** @type {HTMLElement|null} */ (grid.node.querySelector(`[data-index="${view.indexOf(index)}"] [data-field="${name}"]`));
  const below = (/** @type {number} */ index, /** @type {number} */ by) => view[view.indexOf(index) + by];
  const showAll = () => {
    which.value = "all";
    find.value = "";
  };
  const goTo = (/** @type {number} */ index) => {
    showAll();
    draw();
    grid.goTo(index);
  };
  const firstProblem = () => [...issues].map(([key, message]) => ({ place: Number(key.split(".")[0]), name: key.split(".")[1] || "title", message })).sort((a, b) => a.place - b.place).at(0);
  const showFirstProblem = () => {
    const first = firstProblem();
    if (!first) return;
    goTo(first.place);
    field(first.place, first.name)?.focus();
  };
  /** @param {number} index @returns {import("./grid.js").Row} */
  const cells = (index) => {
    const item = rows[index];
    if (!item) return { cells: ["", "", "", "", "", ""], key: `none ${index}` };
    const how = stateOf(item), next = index === data.current && how === "open" && !changed, before = recordedState(item), id = `WI-${index + 1}`;
    const state = h("span", { class: "mnb-state" }, h("span", { "aria-hidden": "true" }, `${SIGNS[how]} `), next ? "open, next" : how);
    const lane = item.origin === null ? "" : data.lanes?.[item.origin] ?? "", laneTitle = lane && `lane ${lane}`;
    const key = JSON.stringify([item, how, index, next, data.can, lane, ...["title", "context", ""].map((name) => issues.get(`${index}.${name}`))]), style = `mnb-is-${how.replaceAll(" ", "-")}`;
    if (!data.can) return { cells: ["", id, state, item.title, h("span", { title: item.context }, item.context), h("span", { class: "mnb-dim", title: laneTitle }, lane)], class: style, key };
    const act = (/** @type {string} */ name, /** @type {string} */ title, /** @type {() => void} */ done, label = title) => button(name, title, done, { class: "mnb-x", "aria-label": label });
    const redo = before === "being worked on" ? act(abandon ? "Keep" : "Abandon", abandon ? "do not abandon this item" : "abandon this item; the cast continues with the next one (key a)", toggleAbandon, `${abandon ? "keep" : "abandon"} ${id}`)
      : (before === "done" || before === "skipped") && act(item.again ? "Not again" : "Again", item.again ? "do not work on this item again" : "work on this item again, before the other open items (key a)", () => toggleAgain(index), `${item.again ? "do not work on" : "work on"} ${id} again`);
    const grip = h("span", { class: "mnb-grip", title: "drag to move, or press Alt and an arrow key", "aria-hidden": "true" }, "⋮");
    grip.addEventListener("pointerdown", (event) => drag(event, index));
    return {
      cells: [grip, id, state, item.cut?.title ? longField(item, index, "title") : input(index, "title"), item.cut?.context || item.context.includes("\n") ? longField(item, index) : input(index, "context"), h("span", { class: "mnb-row" }, redo,
        act("copy", "duplicate this item", () => fullTexts(rows[index]).then(({ title, context }) => addItem(index + 1, title, context)), `duplicate ${id}`),
        act("↑", "move up", () => move(index, -1), `move ${id} up`), act("↓", "move down", () => move(index, 1), `move ${id} down`),
        act("×", "remove this item", () => remove(index), `remove ${id}`))],
      class: style,
      key,
    };
  };
  const input = (/** @type {number} */ index, /** @type {ItemField} */ name) => {
    const wrong = issues.get(`${index}.${name}`), value = rows[index][name];
    const fieldNode = h("input", { class: "mnb-in mnb-cell", "data-field": name, value, "aria-label": `${name} of WI-${index + 1}`, placeholder: name === "title" ? "title: the work to do" : "context: all information needed for the work", title: wrong || (name === "context" ? value.slice(0, 600) : ""), "aria-invalid": wrong ? "true" : null });
    fieldNode.addEventListener("input", () => {
      rows[index][name] = fieldNode.value; // by index: the rows may have changed since this field was made
      touched();
    });
    fieldNode.addEventListener("keydown", (event) => fieldKey(event, index, name));
    return fieldNode;
  };
  /** Return a field that opens a long or multi-line text in a box over the rows below. @param {Item} displayedItem @param {number} index @param {ItemField} [name] */
  const longField = (displayedItem, index, name = "context") => {
    const label = `${name} of WI-${index + 1}`, left = displayedItem.cut?.[name] ? ` … ${displayedItem.cut[name].toLocaleString("en")} characters` : "";
    const open = async (/** @type {Event} */ event) => {
      event.stopPropagation();
      const item = rows[index], texts = await fullTexts(item); // by index: the rows may have changed since this field was made
      const box = h("textarea", { class: "mnb-in mnb-over-rows", rows: "6", "aria-label": label, value: texts[name], style: `top:${view.indexOf(index) * HEIGHT}px` }), before = box.value;
      box.addEventListener("blur", () => {
        box.remove();
        if (box.value === before) return;
        item[name] = box.value;
        item.cut = { ...item.cut, [name]: 0 };
        touched();
      });
      box.addEventListener("keydown", (key) => key.key === "Escape" && box.blur());
      first.closest("[role=row]")?.after(box);
      box.focus();
    };
    const first = h("button", { type: "button", class: "mnb-value mnb-cell", "data-field": name, "aria-label": label, title: "open the complete text in a box", onclick: open }, displayedItem[name] + left);
    return first;
  };
  const fieldKey = (/** @type {KeyboardEvent} */ event, /** @type {number} */ index, /** @type {ItemField} */ name) => {
    const chord = event.ctrlKey || event.metaKey, by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (by) event.altKey ? move(index, by) : field(below(index, by), name)?.focus();
    else if (event.key === "Enter" && chord) apply.click();
    else if (event.key === "Enter") index === rows.length - 1 ? addItem(rows.length) : field(below(index, 1), name)?.focus();
    else if (event.key === "Delete" && chord) remove(index);
    else if (event.key === "Escape") grid.node.focus();
    else return;
    event.preventDefault();
  };
  grid.node.addEventListener("keydown", (event) => {
    if (event.target !== grid.node || !data.can || grid.active < 0) return;
    const index = view[grid.active], before = recordedState(rows[index]), by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (event.key === "Enter" || event.key === "F2") field(index)?.focus();
    else if (event.key === "Delete") remove(index);
    else if (event.key === "Insert") addItem(index + 1);
    else if (event.key === "a" && before === "being worked on") toggleAbandon();
    else if (event.key === "a" && (before === "done" || before === "skipped")) toggleAgain(index);
    else if (event.altKey && by) move(index, by);
    else return;
    event.preventDefault();
  });
  grid.node.addEventListener("paste", (event) => {
    const text = event.clipboardData?.getData("text/plain") || "", lines = rowsOf(text);
    if (!data.can || (event.target !== grid.node && !text.includes("\t") && lines.length < 2)) return;
    event.preventDefault();
    const at = /** @type {HTMLElement|null|undefined} */ (targetOf(event)?.closest("[role=row]"))?.dataset.index;
    let index = at === undefined ? rows.length : view[Number(at)] + 1;
    for (const [title = "", context = ""] of lines) rows.splice(index++, 0, { title, context, origin: null, again: false });
    pasted = true;
    touched();
    grid.show(index - 1);
    grid.draw();
  });
  const drag = (/** @type {PointerEvent} */ event, /** @type {number} */ index) => {
    if (which.value !== "all" || find.value) return;
    event.preventDefault();
    const listening = new AbortController();
    let from = index;
    dragging = true;
    const moved = (/** @type {PointerEvent} */ other) => {
      const top = grid.node.querySelector(".mnb-gridspace")?.getBoundingClientRect().top ?? 0;
      const to = Math.max(0, Math.min(rows.length - 1, Math.floor((other.clientY - top) / HEIGHT)));
      if (to === from) return;
      rows.splice(to, 0, ...rows.splice(from, 1));
      from = to;
      touched();
    };
    const end = () => {
      listening.abort();
      dragging = false;
      touched();
    };
    document.addEventListener("pointermove", moved, { signal: listening.signal });
    document.addEventListener("pointerup", end, { signal: listening.signal });
  };
  const drawQuestion = () => {
    question.hidden = asking === null;
    if (asking === null) return;
    const index = asking;
    const answer = (/** @type {() => void} */ act) => () => {
      asking = null;
      act();
      grid.node.focus();
    };
    refill(question,
      h("span", {}, `“${rows[index].title}” is being worked on${data.at ? ` at ${data.at}` : ""}.`),
      button("Abandon it", "remove it; the cast continues with the next item", answer(() => {
        abandon = true;
        rows.splice(index, 1);
        touched();
      }), small),
      button("Keep it", "the item stays in the list, and work on it continues", answer(draw), small));
  };
  const draw = () => {
    view = matchingIndices(rows, stateOf, which.value, find.value);
    grid.update(view.length);
    const wrong = firstProblem(), incomplete = filledRows().find((row) => !row.title.trim() || !row.context.trim()), busy = data.busy ? "a step is running" : "";
    const missing = incomplete ? `WI-${rows.indexOf(incomplete) + 1} needs a ${incomplete.title.trim() ? "context" : "title"}` : "";
    setEnabled(apply, data.can && changed && !wrong && !incomplete, !changed ? "nothing is changed" : busy || (wrong ? wrong.message : missing));
    setEnabled(revert, changed || stale, "nothing is changed");
    setEnabled(add, data.can, busy || (data.frozen ? "lanes are working on these items; to edit the items, go back to a step before the lanes started" : "this cast is open read-only"));
    setEnabled(undo, Boolean(data.undo), "no edit since the last step");
    currentButton.hidden = data.current === null;
    problemButton.hidden = !wrong;
    if (wrong) setText(problemButton, `✖ WI-${wrong.place + 1}: ${wrong.message}`);
    setText(preview, moves.join(" "));
    drawQuestion();
    const count = counted(rows.length, "item");
    setText(others, stale ? "The cast has changed its items in the meantime. Apply replaces them with your list; Revert shows them." : "");
    setText(summary, changed ? missing || "changed, not applied yet" : !rows.length && data.lists ? "no items yet; a generator creates them" : count);
    setAttr(summary, "class", `mnb-cut ${changed ? "mnb-t-now" : "mnb-dim"}`);
  };
  return {
    /** @param {Partial<Items>} now */
    update(now) {
      const marked = abandon || rows.some((row) => row.again), stood = JSON.stringify(data.stands) === JSON.stringify(now.stands);
      data = { items: [], stands: [], current: null, can: false, base: "", ...now };
      const mine = JSON.stringify(rows.map((row) => [row.title, row.context])) === JSON.stringify(data.items.map((row) => row.slice(0, 2)));
      if (!changed || (mine && (!marked || !stood))) return take();
      stale = data.base !== base && !mine;
      draw();
    },
    unsent: () => (changed ? [{ words: "the work items", message: { kind: "items", ...newItems() } }] : []),
    destroy: () => grid.destroy(),
  };
}
