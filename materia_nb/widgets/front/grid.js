/** A virtual table with rows of equal height; only visible rows are in the page. */
import { h, setAttr, isNew, append, refill, focused, onKeys, targetOf } from "./dom.js";

let gridCount = 0;

/** Return the range of rows to keep in the page: the visible rows and some rows around them. @param {number} top @param {number} room @param {number} height @param {number} count */
export function rowsInPage(top, room, height, count) {
  const first = Math.max(0, Math.floor(top / height) - 6);
  return [first, Math.min(count, first + Math.max(1, Math.floor((room - 24) / height)) + 14)];
}

/**
 * @typedef {{cells: Child[], class?: string, key: string}} Row `key` identifies the content of the cells
 * @param {{label: string, columns: {name: string|Node, say?: string, class?: string}[], height: number, template: string, cells: (index: number) => Row,
 *   fresh?: (row: HTMLElement, index: number) => boolean, pick?: (index: number, by: "mouse"|"key") => void, menu?: (index: number, at: Point & {within: HTMLElement}) => void}} options
 *   `menu`: opens the menu of a row at a point of the window
 *   `fresh`: returns true if the input fields of a row are up to date and need not be redrawn
 */
export function makeGrid({ label, columns, height, template, cells, pick, menu, fresh }) {
  const mine = `mnb-grid-${++gridCount}`;
  const header = h("div", { class: "mnb-gridhead", role: "row", "aria-rowindex": "1", style: `grid-template-columns:${template}` },
    columns.map((column) => h("span", { role: "columnheader", class: column.class }, column.name || h("span", { class: "mnb-sr" }, column.say))));
  const space = h("div", { class: "mnb-gridspace", role: "rowgroup" });
  const scroller = h("div", { class: "mnb-grid", role: "grid", tabindex: "0", "aria-label": label }, h("div", { role: "rowgroup", class: "mnb-gridtop" }, header), space);
  /** @type {Map<number, HTMLElement>} */
  const rows = new Map();
  let count = 0, active = -1;
  const drawRow = (/** @type {number} */ index) => {
    const { cells: content, class: name = "", key } = cells(index);
    const row = rows.get(index) ?? h("div", { role: "row", id: `${mine}-${index}`, "aria-rowindex": index + 2, "data-index": index, style: `top:${index * height}px;height:${height}px;grid-template-columns:${template}` });
    if (!rows.has(index)) append(space, row);
    rows.set(index, row);
    setAttr(row, "class", `mnb-gridrow ${name}`);
    setAttr(row, "aria-selected", String(index === active));
    const typing = focused(row);
    if (typing && (!fresh || fresh(row, index))) return; // a row that is being typed in stays
    if (!isNew(row, key)) return;
    refill(row, content.map((cell, column) => h("span", { role: "gridcell", class: columns[column].class }, cell)));
    if (typing) /** @type {HTMLElement|null} */ (row.querySelector(`[data-field="${typing.dataset.field}"]`))?.focus({ preventScroll: true });
  };
  const draw = () => {
    const [first, last] = rowsInPage(scroller.scrollTop, scroller.clientHeight, height, count);
    for (const [index, row] of rows) {
      if ((index >= first && index < last) || focused(row)) continue;
      row.remove();
      rows.delete(index);
    }
    for (let index = first; index < last; index++) drawRow(index);
    // Rows are in order in the page, for screen readers.
    [...rows].sort((a, b) => a[0] - b[0]).forEach(([, row], index) => {
      if (space.children[index] !== row && !focused(row)) space.insertBefore(row, space.children[index] ?? null);
    });
    setAttr(scroller, "aria-activedescendant", rows.has(active) ? `${mine}-${active}` : null);
  };
  let drawing = 0;
  scroller.addEventListener("scroll", () => {
    drawing ||= requestAnimationFrame(() => {
      drawing = 0;
      draw();
    });
  });
  const show = (/** @type {number} */ index) => {
    const top = index * height, room = scroller.clientHeight - 26;
    if (top < scroller.scrollTop) scroller.scrollTop = top;
    else if (top + height > scroller.scrollTop + room) scroller.scrollTop = top + height - room;
  };
  const activate = (/** @type {number} */ index, /** @type {"mouse"|"key"} */ by) => {
    if (!count) return;
    active = Math.max(0, Math.min(count - 1, index));
    show(active);
    draw();
    pick?.(active, by);
  };
  const page = () => Math.max(1, Math.floor((scroller.clientHeight - 24) / height));
  const go = (/** @type {() => number} */ to) => (/** @type {Event} */ event) => event.target === scroller && activate(to(), "key");
  onKeys(scroller, {
    ArrowDown: go(() => active + 1), ArrowUp: go(() => active - 1), PageDown: go(() => active + page()), PageUp: go(() => active - page()),
    Home: go(() => 0), End: go(() => count - 1),
  });
  space.addEventListener("click", (event) => {
    const row = targetOf(event)?.closest("[role=row]");
    if (row instanceof HTMLElement) activate(Number(row.dataset.index), "mouse");
  });
  scroller.addEventListener("contextmenu", (event) => {
    const row = targetOf(event)?.closest("[role=row]") ?? rows.get(active); // opened with the keyboard: use the active row
    if (!menu || !(row instanceof HTMLElement) || !row.dataset.index) return;
    event.preventDefault();
    event.stopPropagation();
    menu(Number(row.dataset.index), { x: event.clientX, y: event.clientY, within: scroller });
  });
  let high = 0, following = false;
  const watch = new ResizeObserver(() => {
    const atEnd = scroller.scrollHeight - scroller.scrollTop - high < height * 1.5, first = !high;
    high = scroller.clientHeight;
    if (high && first && active >= 0) show(active);
    else if (high && following && (first || atEnd)) scroller.scrollTop = scroller.scrollHeight;
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
    /** Set the number of rows and draw those in view; with `follow`, a list scrolled to its end stays at the end. @param {number} total @param {boolean} [follow] */
    update(total, follow = false) {
      following = follow;
      const atEnd = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < height * 1.5, grew = total > count;
      count = total;
      space.style.height = `${total * height}px`;
      setAttr(scroller, "aria-rowcount", total + 1);
      if (grew && atEnd && follow) scroller.scrollTop = scroller.scrollHeight;
      draw();
    },
    show,
    draw,
    /** Make a row active and bring it into view. @param {number} index */
    goTo(index) {
      active = index;
      show(index);
      draw();
    },
    destroy: () => watch.disconnect(),
  };
}
