/** The steps as a table with a time axis; steps can be selected and played. */
import { h, button, isNew, refill, setText, setAttr, show } from "./dom.js";
import { countWords } from "./words.js";
import { makeGrid } from "./grid.js";
import { drawBlocks } from "./blocks.js";
import { stepMenu } from "./compare.js";

const COLUMNS = "48px var(--mnb-lane-column, 0px) minmax(76px,1.2fr) var(--mnb-item-column, minmax(76px,0.9fr)) minmax(110px,3fr) var(--mnb-next-column, minmax(72px,1.1fr)) var(--mnb-spent-columns, 60px 54px) 44px minmax(64px,0.9fr)";

/** Minimum number of steps that can be played. */
const MIN_TO_PLAY = 10;

/** Return the position of a step on the axis, in percent of its width; all waits are equally short. @param {Time} time @param {Span} span @param {boolean} waiting */
export function barOf([over, , , ms, waits, msAfter, waitsAfter], [allMs, allWaits], waiting) {
  const folds = allWaits + (over ? 0 : 1), fold = folds ? Math.min(8, 40 / folds) : 0;
  const scale = (100 - folds * fold) / Math.max(1, allMs), left = ms * scale + waits * fold, long = (msAfter - ms) * scale;
  return { left, long, fold, waited: waitsAfter > waits || waiting, works: !over && !waiting };
}

/** @typedef {[kind: string, from: number, width: number]} Piece of a bar, in hundredths of the axis */

/** Draw a step on the axis: solid for work, hatched for waiting. @param {Time} time @param {Piece[]} pieces */
const timeBar = (time, pieces) =>
  h("span", { class: "mnb-gantt", title: time[0] ? time[2] : "not over" }, pieces.map(([kind, from, width]) => h("span", { class: kind, style: `left:${from}%;width:${width}%` })));

/** @param {Time} time @param {Span} span @param {boolean} waiting @param {boolean} no @returns {Piece[]} */
function piecesOf(time, span, waiting, no) {
  const { left, long, fold, waited, works } = barOf(time, span, waiting);
  const kind = no ? "mnb-back" : time[7] ? "" : "mnb-unsure";
  return [[kind, left, long], ...(waited ? [/** @type {Piece} */ (["mnb-wait", left + long, fold])] : []), ...(works ? [/** @type {Piece} */ ([kind, left + long, fold])] : [])];
}

/**
 * Return the pieces of a step on the axis of its lane, for the table column.
 * @param {Block|undefined} axis @param {string} lane @param {number} step @param {boolean} no @returns {Piece[]}
 */
export function piecesOnAxis(axis, lane, step, no) {
  const bars = axis?.rows[axis.lanes.indexOf(lane)]?.[1] ?? [];
  const kinds = { wait: "mnb-wait", unsure: "mnb-unsure", bad: "mnb-back" };
  return bars.filter((/** @type {any[]} */ bar) => bar[5] === step).map((/** @type {[number, number, "wait"|"unsure"|"bad"]} */ [left, wide, kind]) => [kinds[kind] ?? (no ? "mnb-back" : ""), left * 100, wide * 100]);
}

/** @param {HTMLElement} host @param {PanelSender} send @param {HTMLElement} controls @returns {Part} */
export function timelinePart(host, send, controls) {
  /** @type {Timeline} */
  let data = { id: "", total: 0, at: null, axis: 1, tail: [], span: [0, 0], lines: [], line: null, busy: false, own: true, past: false };
  /** @type {Map<number, Step>} */
  let rows = new Map();
  /** @type {number[]|null} the rows found by the search, or null */
  let filtered = null;
  let requested = new Set(), id = "", playing = 0, looking = 0, finding = 0, searches = 0;
  const rowAt = (/** @type {number} */ index) => filtered?.[index] ?? index + 1;
  const called = (/** @type {number} */ row) => {
    const [number, lane] = rows.get(row) ?? [row, ""];
    return lane ? `${number} of lane ${lane}` : `${number}`;
  };
  /** Return the menu entries that repeat the cast from a step of the current branch. @param {number} row @returns {MenuEntry[]} */
  const repetitions = (row) => {
    const [step, lane] = rows.get(row) ?? [row, ""];
    if (lane || data.busy || (data.line ?? null) !== null) return [];
    const fork = { words: data.own ? "Fork from here" : "Continue here", acts: true, act: () => send("fork", { step }) };
    return data.own ? [{ words: "Go back to here", acts: true, act: () => send("back", { step }) }, fork] : [fork];
  };
  const grid = makeGrid({
    label: "steps", height: 24, template: COLUMNS,
    columns: [{ name: "step", class: "mnb-r" }, { name: "lane" }, { name: "socket" }, { name: "item" }, { name: "output" }, { name: "next" }, { name: "tokens", class: "mnb-r" }, { name: "cost", class: "mnb-r" }, { name: "s", class: "mnb-r" }, { name: "time" }],
    cells: (index) => cells(rowAt(index)),
    pick: (index) => look(rowAt(index)),
    menu: (index, at) => stepMenu(send, at, rowAt(index), data.at, called, repetitions(rowAt(index))),
  });
  const small = { class: "mnb-b mnb-small" };
  const filter = h("input", { class: "mnb-in mnb-find", type: "search", placeholder: "filter steps", "aria-label": "filter steps by socket, item or output" });
  const line = h("select", { class: "mnb-in", "aria-label": "branch of steps", onchange: () => send("line", { line: line.value === "" ? null : Number(line.value) }) });
  const play = button("▶", "play the steps", () => (playing ? stop() : start()), { ...small, "aria-label": "play the steps" });
  const speed = h("select", { class: "mnb-in", "aria-label": "playback speed" }, [["1×", 700], ["4×", 175], ["16×", 44]].map(([label, wait]) => h("option", { value: wait }, label)));
  const slider = h("input", { type: "range", class: "mnb-slider", min: "0", max: "0", "aria-label": "selected step" });
  const now = button("Now", "show the present again", () => (stop(), send("now")), small);
  controls.append(line, now, play, speed, slider, filter);
  const lanes = h("div", { class: "mnb-lanesaxis", tabindex: "0", hidden: true });
  host.classList.add("mnb-timeline");
  host.append(lanes, grid.node);

  const look = (/** @type {number} */ row) => {
    clearTimeout(looking);
    looking = setTimeout(() => send("row", { row }), 60);
  };
  const start = () => {
    if (!data.total) return;
    let at = data.at !== null && data.at < data.total ? data.at : 0;
    setText(play, "‖");
    setAttr(play, "aria-label", "stop playing");
    const go = () => {
      at += 1;
      if (at > data.total) return stop();
      send("row", { row: at });
      playing = setTimeout(go, Number(speed.value));
    };
    playing = setTimeout(go, 0);
  };
  const stop = () => {
    clearTimeout(playing);
    playing = 0;
    setText(play, "▶");
    setAttr(play, "aria-label", "play the steps");
  };
  slider.addEventListener("input", () => {
    stop();
    look(Number(slider.value));
  });
  filter.addEventListener("input", () => {
    clearTimeout(finding);
    finding = setTimeout(search, 200);
  });
  const search = async () => {
    const mine = ++searches, text = filter.value.trim();
    if (!text) {
      filtered = null;
      return grid.update(data.total, true);
    }
    const result = await send.ask("find", { text });
    if (mine !== searches) return;
    filtered = result.rows;
    grid.node.scrollTop = 0;
    grid.update(result.rows.length);
  };
  const keep = (/** @type {number} */ first, /** @type {Step[]} */ fresh) => {
    fresh.forEach((step, index) => rows.set(first + index, step));
    if (fresh.some((step) => step[7] || step[8])) host.dataset.spent = "yes";
  };
  const fetchRows = async (/** @type {number} */ row) => {
    const first = Math.max(1, row - 60), mine = id;
    if (requested.has(first)) return;
    requested.add(first);
    const answer = await send.ask("rows", { first, last: row + 140 });
    if (mine !== id) return;
    keep(first, answer.rows);
    grid.draw();
  };
  const cells = (/** @type {number} */ index) => {
    const row = rows.get(index);
    if (!row) {
      fetchRows(index);
      return { cells: ["…", "", "", "", "", "", "", "", "", ""], key: `? ${index}` };
    }
    const [number, lane, name, item, out, verdict, next, tokens, cost, time, marks] = row;
    const isCurrent = index === (data.at ?? data.total), axis = /** @type {Block|undefined} */ (data.lanes?.[0]), no = verdict === "no";
    const onAxis = axis && (index < data.axis ? [] : piecesOnAxis(axis, lane, number, no));
    const stopped = !data.busy || onAxis?.at(-1)?.[0] === "mnb-wait", waits = next === "waiting" && stopped, works = next === "waiting" && !stopped;
    const pieces = onAxis ?? piecesOf(time, data.span, waits, no);
    const tone = verdict === "yes" ? "mnb-t-good" : verdict === "no" ? "mnb-t-no" : "";
    return {
      cells: [
        `${isCurrent ? "▸ " : ""}${number}`, lane, name, item ? h("span", { title: item[0] }, item[1] || item[0]) : "",
        h("span", {}, tone && h("span", { class: tone }, verdict === "yes" ? "✓ " : "✗ "), h("span", { class: "mnb-code" }, out || (waits ? "waits" : works ? "works" : "")), marks.map((mark) => [" ", h("span", { class: "mnb-mark" }, mark)])),
        h("span", { class: next.startsWith("failed") ? "mnb-t-bad" : tone }, works ? "working" : next),
        tokens ? countWords(tokens) : "", cost ? cost.toFixed(cost < 1 ? 3 : 2) : "", time[0] ? time[1] : "", timeBar(time, pieces),
      ],
      class: isCurrent ? "mnb-here" : "",
      key: JSON.stringify([row, isCurrent, pieces, works]),
    };
  };
  return {
    /** @param {Timeline} fresh */
    update(fresh) {
      data = fresh;
      if (data.id !== id) {
        id = data.id;
        rows = new Map();
        requested = new Set();
        delete host.dataset.spent;
        filtered = null;
        filter.value = "";
      }
      lanes.hidden = !data.lanes?.length;
      drawBlocks(lanes, data.lanes, send);
      setAttr(grid.node, "data-lanes", data.lanes?.length ? "yes" : null);
      keep(data.total - (data.tail ?? []).length + 1, data.tail ?? []);
      const lines = data.lines ?? [], line_ = data.line ?? null, past = data.at ?? null, query = filter.value.trim();
      if (isNew(line, lines)) refill(line, lines.map(([value, label]) => h("option", { value: value ?? "" }, label)));
      line.hidden = lines.length < 2;
      line.value = line_ === null ? "" : String(line_);
      setAttr(slider, "max", data.total);
      if (document.activeElement !== slider || playing) slider.value = String(past ?? data.total);
      setAttr(slider, "aria-valuetext", past === null ? "the present" : past ? `step ${called(past)}` : "the start");
      show(now, data.past, grid.node);
      for (const control of [play, speed, slider]) control.hidden = data.total < MIN_TO_PLAY;
      setAttr(grid.node, "data-empty", query ? "no such step" : "Steps appear here. Press Step.");
      if (query) return void search();
      if (past) grid.active = past - 1;
      grid.update(data.total, past === null);
      if (past) grid.show(past - 1);
    },
    destroy() {
      stop();
      clearTimeout(looking);
      clearTimeout(finding);
      grid.destroy();
    },
  };
}
