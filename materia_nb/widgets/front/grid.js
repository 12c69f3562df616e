/** A table of many rows of one height, of which only those in view are in the page. */
import { h, clear, setAttr } from "./dom.js";

let gridsMade = 0;

/**
 * @param {{label: string, columns: Array<{name: string, say?: string, class?: string}>, height: number, template: string,
 *   fresh?: (row: HTMLElement, index: number) => boolean, cells: (index: number) => {cells: Array<Node|string>, class?: string, key: string}, pick?: (index: number, by: "mouse"|"key") => void}} options
 */
export function makeGrid({ label, columns, height, template, cells, pick, fresh }) {
  const mine = `mnb-grid-${++gridsMade}`;
  const header = h("div", { class: "mnb-gridhead", role: "row", "aria-rowindex": "1", style: `grid-template-columns:${template}` },
    columns.map((one) => h("span", { role: "columnheader", class: one.class || "" }, one.name || h("span", { class: "mnb-sr" }, one.say))));
  const space = h("div", { class: "mnb-gridspace", role: "rowgroup" });
  const scroller = h("div", { class: "mnb-grid", role: "grid", tabindex: "0", "aria-label": label }, h("div", { role: "rowgroup", class: "mnb-gridtop" }, header), space);
  const made = new Map();
  let count = 0, active = -1;
  const rowsInView = () => Math.max(1, Math.floor((scroller.clientHeight - 24) / height));
  const draw = () => {
    const first = Math.max(0, Math.floor(scroller.scrollTop / height) - 6);
    const last = Math.min(count, first + rowsInView() + 14);
    for (const [index, row] of made) {
      if ((index < first || index >= last) && !row.contains(document.activeElement)) {
        row.remove();
        made.delete(index);
      }
    }
    for (let index = first; index < last; index++) {
      const { cells: content, class: name = "", key } = cells(index);
      let row = made.get(index);
      if (!row) {
        row = h("div", { role: "row", id: `${mine}-${index}`, "aria-rowindex": String(index + 2), "data-index": String(index), style: `top:${index * height}px;height:${height}px;grid-template-columns:${template}` });
        made.set(index, row);
        space.append(row);
      }
      setAttr(row, "class", `mnb-gridrow ${name}`);
      setAttr(row, "aria-selected", index === active ? "true" : "false");
      if (row.dataset.key === key) continue;
      const typing = row.contains(document.activeElement) ? document.activeElement : null;
      if (typing && (!fresh || fresh(row, index))) continue; // what one types in stays
      row.dataset.key = key;
      clear(row).append(...content.map((cell, place) => h("span", { role: "gridcell", class: columns[place].class || "" }, cell)));
      if (typing) row.querySelector(`[data-field="${typing.dataset.field}"]`)?.focus({ preventScroll: true });
    }
    // Rows stand in the page in their order, as a screen reader goes.
    const sorted = [...made.keys()].sort((a, b) => a - b);
    sorted.forEach((index, place) => {
      const row = made.get(index);
      if (space.children[place] !== row && !row.contains(document.activeElement)) space.insertBefore(row, space.children[place] || null);
    });
    setAttr(scroller, "aria-activedescendant", made.has(active) ? `${mine}-${active}` : null);
  };
  let drawing = false;
  scroller.addEventListener("scroll", () => {
    if (drawing) return;
    drawing = true;
    requestAnimationFrame(() => {
      drawing = false;
      draw();
    });
  });
  const show = (index) => {
    const top = index * height, room = scroller.clientHeight - 26;
    if (top < scroller.scrollTop) scroller.scrollTop = top;
    else if (top + height > scroller.scrollTop + room) scroller.scrollTop = top + height - room;
  };
  const activate = (index, by) => {
    if (index < 0 || index >= count) return;
    active = index;
    show(index);
    draw();
    pick?.(index, by);
  };
  scroller.addEventListener("keydown", (event) => {
    if (event.target !== scroller) return;
    const to = { ArrowDown: active + 1, ArrowUp: active - 1, Home: 0, End: count - 1, PageDown: active + rowsInView(), PageUp: active - rowsInView() }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    activate(Math.max(0, Math.min(count - 1, to)), "key");
  });
  space.addEventListener("click", (event) => {
    const row = event.target.closest("[role=row]");
    if (row) activate(Number(row.dataset.index), "mouse");
  });
  let sized = false, following = false;
  const watch = new ResizeObserver(() => {
    if (!sized && scroller.clientHeight) {
      sized = true;
      if (active >= 0) show(active);
      else if (following) scroller.scrollTop = scroller.scrollHeight;
    }
    draw();
  });
  watch.observe(scroller);
  return {
    node: scroller,
    get active() {
      return active;
    },
    set active(index) {
      active = index;
    },
    /** Say how many rows there are, and draw those in view; at the end it stays there as rows come, if it is to. */
    update(total, follow = false) {
      following = follow;
      const atEnd = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < height * 1.5;
      const grew = total > count;
      count = total;
      space.style.height = `${total * height}px`;
      setAttr(scroller, "aria-rowcount", String(total + 1));
      if (grew && atEnd && follow) scroller.scrollTop = scroller.scrollHeight;
      draw();
    },
    show,
    draw,
    destroy: () => watch.disconnect(),
  };
}
