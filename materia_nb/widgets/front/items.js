/** The work items as a table: edited, added, moved by drag or keys, pasted; applied as one change. */
import { h, button, setText, setAttr, setEnabled, isEnabled } from "./dom.js";
import { makeGrid } from "./grid.js";
import { rowsOf } from "./sheet.js";

const ITEM_COLUMNS = "22px 62px 132px minmax(110px,1fr) minmax(120px,2fr) 176px";
const STANDS = { done: "✓", "being worked on": "▸", open: "○", "passed over": "⊘", new: "+", again: "↻", "to be abandoned": "⊘" };

export function itemsPart(host, send, controls) {
  let data = { items: [], stands: [], current: null, can: false }, base = "", rows = [], changed = false, stale = false, view = [], issues = new Map();
  let said = [], abandon = false, asking = null; // what applying would move, whether the item being worked on is given up, and the row that this is asked about
  const words = h("span", { class: "mnb-dim", role: "status" });
  const grid = makeGrid({
    label: "work items",
    height: 28,
    template: ITEM_COLUMNS,
    columns: [{ name: "", say: "drag" }, { name: "item" }, { name: "state" }, { name: "title" }, { name: "context" }, { name: "", say: "buttons" }],
    cells: (place) => itemCells(view[place]),
    fresh: (row, place) => [...row.querySelectorAll("input[data-field]")].every((field) => field.value === rows[view[place]]?.[field.dataset.field]),
    pick: (place, by) => by === "mouse" && send("select", { element: rows[view[place]]?.origin != null && !changed ? { kind: "item", id: String(view[place] + 1) } : null }),
  });
  const which = h("select", { class: "mnb-in", "aria-label": "which items", onchange: () => draw() },
    ["all", "open", "being worked on", "done", "passed over"].map((value) => h("option", { value }, value)));
  const find = h("input", { class: "mnb-in mnb-find", type: "search", placeholder: "find an item", "aria-label": "find an item", oninput: () => draw() });
  const add = button("Add", "a new item at the end", () => isEnabled(add) && addItem(rows.length), { class: "mnb-b mnb-small" });
  const here = button("Current", "scroll to the current item", () => {
    which.value = "all";
    draw();
    if (data.current !== null) {
      grid.active = data.current;
      grid.show(data.current);
      grid.draw();
    }
  }, { class: "mnb-b mnb-small" });
  const apply = button("Apply", "put this list into the cast, as one change", () => isEnabled(apply) && send("items", wanted()), { class: "mnb-b mnb-main mnb-small" });
  const revert = button("Revert", "forget these edits, show the cast's items", () => isEnabled(revert) && take(), { class: "mnb-b mnb-small" });
  const undo = button("Undo", "take the last edit of the cast back", () => isEnabled(undo) && send("undo"), { class: "mnb-b mnb-small" });
  const question = h("div", { class: "mnb-row mnb-ask", role: "alert", hidden: true });
  const trouble = button("", "go to the item that is not right yet", () => showTrouble(), { class: "mnb-b mnb-small mnb-t-bad", hidden: true });
  const preview = h("div", { class: "mnb-moves", role: "status" });
  controls.append(words, trouble, which, find, here, add, apply, revert, undo);
  host.append(h("div", { class: "mnb-items" }, question, preview, grid.node));

  const take = () => {
    rows = (data.items || []).map(([title, context], origin) => ({ title, context, origin, again: false }));
    base = data.base;
    changed = stale = abandon = false;
    said = [];
    asking = null;
    issues = new Map();
    draw();
  };
  const touched = () => {
    changed = abandon || rows.length !== (data.items || []).length || rows.some((one, place) => one.again || one.origin !== place || one.title !== data.items[place][0] || one.context !== data.items[place][1]);
    check();
    draw();
  };
  let checking = null, asked = 0;
  const check = () => {
    clearTimeout(checking);
    checking = setTimeout(async () => {
      const mine = ++asked;
      const found = await send.ask("check_items", wanted());
      if (mine !== asked || dragging) return;
      issues = new Map();
      said = changed ? found.said : [];
      // What stands here is what Apply makes of it, but for a row that one types in.
      if (found.order && !grid.node.querySelector(".mnb-over-rows") && found.order.some((from, place) => from !== place)) {
        const typing = document.activeElement, at = typing?.closest?.("[role=row]")?.dataset.index;
        const kept = at !== undefined && grid.node.contains(typing) ? [rows[view[Number(at)]], typing.dataset.field] : null;
        typing?.closest?.("[role=row]") && grid.node.contains(typing) && typing.blur();
        rows = found.order.map((from) => rows[from]);
        draw();
        if (kept) field(rows.indexOf(kept[0]), kept[1] || "title")?.focus();
      }
      for (const [path, message] of found.issues) {
        const [, place, field] = path.split(".");
        const one = rows[Number(place)];
        // Of a new item in which nothing has been typed nothing is complained of yet.
        if (one && one.origin === null && !one.title && !one.context) continue;
        issues.set(`${place}.${field || ""}`, message);
      }
      draw();
      if (pasted && issues.size) showTrouble();
      pasted = false;
    }, 150);
  };
  let pasted = false, dragging = false;
  const wanted = () => ({ rows: rows.map((one) => [one.title, one.context, one.origin, one.again]), base, abandon });
  const firstTrouble = () => [...issues].map(([key, message]) => [Number(key.split(".")[0]), key.split(".")[1], message]).sort((a, b) => a[0] - b[0])[0];
  const showTrouble = () => {
    const [place, name] = firstTrouble() || [];
    if (place === undefined) return;
    which.value = "all";
    find.value = "";
    draw();
    grid.active = place;
    grid.show(place);
    grid.draw();
    field(place, name || "title")?.focus();
  };
  // -- again, abandon --
  const again = (place) => {
    rows[place].again = !rows[place].again;
    touched();
  };
  const giveUp = (take) => {
    abandon = take === undefined ? !abandon : true;
    const place = asking;
    asking = null;
    if (take) rows.splice(place, 1);
    touched();
    grid.node.focus();
  };
  const ask = (place) => {
    asking = place;
    draw();
    question.querySelector("button")?.focus();
  };
  const addItem = (place, title = "", context = "") => {
    rows.splice(place, 0, { title, context, origin: null });
    which.value = "all";
    find.value = "";
    touched();
    grid.show(place);
    grid.draw();
    if (!title) field(place, "title")?.focus();
  };
  const field = (place, name) => grid.node.querySelector(`[data-index="${view.indexOf(place)}"] [data-field="${name}"]`);
  const move = (place, by) => {
    const to = place + by;
    if (to < 0 || to >= rows.length) return;
    const inField = document.activeElement !== grid.node;
    rows.splice(to, 0, ...rows.splice(place, 1));
    touched();
    if (inField) return field(to, "title")?.focus();
    grid.active = to;
    grid.draw();
  };
  const remove = (place) => {
    if (stands(rows[place]) === "being worked on") return ask(place);
    rows.splice(place, 1);
    touched();
    grid.node.focus();
  };
  const stands = (one) => {
    if (one.origin === null) return "new";
    const how = data.stands[one.origin];
    return one.again ? "again" : how === "being worked on" && abandon ? "to be abandoned" : how;
  };
  const itemCells = (place) => {
    const one = rows[place];
    if (!one) return { cells: ["", "", "", "", "", ""], key: `none ${place}` };
    const how = stands(one), next = place === data.current && how === "open" && !changed;
    const state = h("span", { class: "mnb-state" }, h("span", { "aria-hidden": "true" }, `${STANDS[how]} `), next ? "open, next" : how);
    const key = JSON.stringify([one, how, place, next, data.can, issues.get(`${place}.title`), issues.get(`${place}.context`), issues.get(`${place}.`)]);
    const style = `mnb-is-${how.replaceAll(" ", "-")}`;
    if (!data.can) return { cells: ["", `WI-${place + 1}`, state, one.title, h("span", { title: one.context }, one.context), ""], class: style, key };
    const was = data.stands[one.origin];
    const redo = was === "being worked on" ? button(abandon ? "Keep" : "Abandon", abandon ? "go on with it after all" : "give it up: the cast goes on with the next item (key a)", () => giveUp(), { class: "mnb-x", "aria-label": `${abandon ? "keep" : "abandon"} WI-${place + 1}` })
      : was === "done" || was === "passed over" ? button(one.again ? "Not again" : "Again", one.again ? "leave it as it is" : "work on it again, first of the open ones (key a)", () => again(place), { class: "mnb-x", "aria-label": `${one.again ? "do not work on" : "work on"} WI-${place + 1} again` })
      : null;
    const input = (name) => {
      const trouble = issues.get(`${place}.${name}`);
      const made = h("input", { class: "mnb-in mnb-cell", "data-field": name, value: one[name], "aria-label": `${name} of WI-${place + 1}`, placeholder: name === "title" ? "title: what is to be done" : "context: all that is needed to do it", title: trouble || (name === "context" ? one.context.slice(0, 600) : ""), "aria-invalid": trouble ? "true" : null });
      made.addEventListener("input", () => {
        rows[place][name] = made.value; // by its place: the rows may be others than when this field was made
        touched();
      });
      made.addEventListener("keydown", (event) => itemKey(event, place, name));
      return made;
    };
    const grip = h("span", { class: "mnb-grip", title: "drag to move; or Alt with the arrow keys", "aria-hidden": "true" }, "⋮");
    grip.addEventListener("pointerdown", (event) => drag(event, place));
    return {
      cells: [grip, `WI-${place + 1}`, state, input("title"), longField(one, place, input), h("span", { class: "mnb-row" },
        redo,
        button("copy", "duplicate this item", () => addItem(place + 1, one.title, one.context), { class: "mnb-x", "aria-label": `duplicate WI-${place + 1}` }),
        button("↑", "move up", () => move(place, -1), { class: "mnb-x", "aria-label": `move WI-${place + 1} up` }),
        button("↓", "move down", () => move(place, 1), { class: "mnb-x", "aria-label": `move WI-${place + 1} down` }),
        button("×", "remove this item", () => remove(place), { class: "mnb-x", "aria-label": `remove WI-${place + 1}` }))],
      class: style,
      key,
    };
  };
  // A context of several lines does not fit a line: it opens in a box over the rows below.
  const longField = (one, place, input) => {
    if (!one.context.includes("\n")) return input("context");
    const first = h("button", { type: "button", class: "mnb-value mnb-cell", "data-field": "context", "aria-label": `context of WI-${place + 1}`, title: "several lines: opens a box" }, one.context);
    first.addEventListener("click", (event) => {
      event.stopPropagation();
      const box = h("textarea", { class: "mnb-in mnb-over-rows", rows: "6", "aria-label": `context of WI-${place + 1}` });
      box.value = one.context;
      const done = () => {
        one.context = box.value;
        box.remove();
        touched();
      };
      box.addEventListener("blur", done);
      box.addEventListener("keydown", (key) => key.key === "Escape" && box.blur());
      first.closest("[role=row]").after(box);
      box.style.top = `${view.indexOf(place) * 28}px`;
      box.focus();
    });
    return first;
  };
  const itemKey = (event, place, name) => {
    if (event.altKey && event.key === "ArrowUp") move(place, -1);
    else if (event.altKey && event.key === "ArrowDown") move(place, 1);
    else if (event.key === "ArrowUp") field(view[view.indexOf(place) - 1], name)?.focus();
    else if (event.key === "ArrowDown") field(view[view.indexOf(place) + 1], name)?.focus();
    else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) apply.click();
    else if (event.key === "Enter") place === rows.length - 1 ? addItem(rows.length) : field(view[view.indexOf(place) + 1], name)?.focus();
    else if (event.key === "Delete" && (event.ctrlKey || event.metaKey)) remove(place);
    else if (event.key === "Escape") grid.node.focus();
    else return;
    event.preventDefault();
  };
  grid.node.addEventListener("keydown", (event) => {
    if (event.target !== grid.node || !data.can || grid.active < 0) return;
    const place = view[grid.active];
    if (event.key === "Enter" || event.key === "F2") field(place, "title")?.focus();
    else if (event.key === "Delete") remove(place);
    else if (event.key === "Insert") addItem(place + 1);
    else if (event.key === "a" && data.stands[rows[place].origin] === "being worked on") giveUp();
    else if (event.key === "a" && ["done", "passed over"].includes(data.stands[rows[place].origin])) again(place);
    else if (event.altKey && event.key === "ArrowUp") move(place, -1);
    else if (event.altKey && event.key === "ArrowDown") move(place, 1);
    else return;
    event.preventDefault();
  });
  grid.node.addEventListener("paste", (event) => {
    const text = event.clipboardData?.getData("text/plain") || "";
    const lines = rowsOf(text);
    if (!data.can || (event.target !== grid.node && !text.includes("\t") && lines.length < 2)) return;
    event.preventDefault();
    const at = event.target.closest?.("[role=row]")?.dataset.index;
    let place = at === undefined ? rows.length : view[Number(at)] + 1;
    for (const [title = "", context = ""] of lines) rows.splice(place++, 0, { title, context, origin: null });
    pasted = true;
    touched();
    grid.show(place - 1);
    grid.draw();
  });
  const drag = (event, place) => {
    if (which.value !== "all" || find.value) return;
    event.preventDefault();
    let from = place;
    dragging = true;
    const moved = (other) => {
      const box = grid.node.querySelector(".mnb-gridspace").getBoundingClientRect();
      const to = Math.max(0, Math.min(rows.length - 1, Math.floor((other.clientY - box.top) / 28)));
      if (to === from) return;
      rows.splice(to, 0, ...rows.splice(from, 1));
      from = to;
      touched();
    };
    const end = () => {
      document.removeEventListener("pointermove", moved);
      document.removeEventListener("pointerup", end);
      dragging = false;
      touched();
    };
    document.addEventListener("pointermove", moved);
    document.addEventListener("pointerup", end);
  };
  const draw = () => {
    const sought = find.value.trim().toLowerCase();
    view = [];
    rows.forEach((one, place) => {
      const how = stands(one);
      const fits = which.value === "all" || how === which.value || (which.value === "open" && ["new", "again"].includes(how));
      if (fits && (!sought || `${one.title} ${one.context} wi-${place + 1}`.toLowerCase().includes(sought))) view.push(place);
    });
    grid.update(view.length);
    const wrong = issues.size;
    const blank = rows.some((one) => !one.title.trim() || !one.context.trim());
    setEnabled(apply, data.can && changed && !wrong && !blank, !changed ? "nothing is changed" : data.busy ? "a step is running" : wrong ? firstTrouble()[2] : "every item needs a title and a context");
    setEnabled(revert, changed || stale, "nothing is changed");
    setEnabled(add, data.can, data.busy ? "a step is running" : "this cast is only looked at");
    setEnabled(undo, Boolean(undo.dataset.can), "no edit since the last step");
    here.hidden = data.current === null;
    const count = `${rows.length} item${rows.length === 1 ? "" : "s"}`;
    trouble.hidden = !wrong;
    if (wrong) setText(trouble, `✖ WI-${firstTrouble()[0] + 1}: ${firstTrouble()[2]}`);
    setText(preview, said.join(" "));
    question.hidden = asking === null;
    if (asking !== null) {
      const title = rows[asking].title;
      question.replaceChildren(
        h("span", {}, `“${title}” is being worked on${data.at ? ` at ${data.at}` : ""}.`),
        button("Abandon it", "take it out; the cast goes on with the next item", () => giveUp(true), { class: "mnb-b mnb-small" }),
        button("Leave it", "it stays in the list and is worked on", () => {
          asking = null;
          draw();
          grid.node.focus();
        }, { class: "mnb-b mnb-small" }),
      );
    }
    setText(words, stale ? "The cast changed its items meanwhile: Apply puts your list in place of theirs, Revert shows theirs." : wrong ? "" : changed ? `${count} · changed, not applied yet` : !rows.length && data.lists ? "no items yet: a generator makes them" : count);
    setAttr(words, "class", stale || wrong ? "mnb-t-bad" : changed ? "mnb-t-now" : "mnb-dim");
  };
  return {
    update(now) {
      const marked = abandon || rows.some((one) => one.again), stood = JSON.stringify(data.stands) === JSON.stringify(now.stands);
      data = now;
      undo.dataset.can = now.undo ? "yes" : "";
      const mine = JSON.stringify(rows.map((one) => [one.title, one.context])) === JSON.stringify(now.items);
      if (!changed || (mine && (!marked || !stood))) return take();
      stale = now.base !== base && !mine;
      draw();
    },
    unsent: () => (changed ? [{ words: "the work items", message: { kind: "items", ...wanted() } }] : []),
    destroy: () => grid.destroy(),
  };
}
