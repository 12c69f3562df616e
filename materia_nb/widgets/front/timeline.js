/** The steps as a table with a time axis; one of them can be looked at, and they can be played. */
import { h, button, clear, setText, setAttr, setEnabled, isEnabled, countWords } from "./dom.js";
import { makeGrid } from "./grid.js";

const STEP_COLUMNS = "48px minmax(88px,1.2fr) minmax(96px,0.9fr) minmax(130px,3fr) minmax(60px,1.1fr) 60px 54px 44px minmax(64px,0.9fr)";

/** Draw a step on an axis of the work of all: solid where it was worked on, hatched where it waited, all waits equally short. */
function timeBar([over, , words, ms, waits, msAfter, waitsAfter, known], [allMs, allWaits], { waits: waiting, no }) {
  const folds = allWaits + (over ? 0 : 1), fold = folds ? Math.min(8, 40 / folds) : 0;
  const scale = (100 - folds * fold) / Math.max(1, allMs);
  const left = ms * scale + waits * fold, long = (msAfter - ms) * scale;
  const part = (name, from, width) => h("span", { class: name, style: `left:${from}%;width:${width}%` });
  const kind = no ? "mnb-back" : known ? "" : "mnb-unsure";
  return h("span", { class: "mnb-gantt", title: over ? words : "not over" },
    part(kind, left, long),
    (waitsAfter > waits || waiting) && part("mnb-wait", left + long, fold),
    !over && !waiting && part(kind, left + long, fold));
}

export function timelinePart(host, send, controls) {
  let data = { total: 0, tail: [] }, rows = new Map(), id = "", filtered = null, asked = new Set(), playing = null, wanted = "";
  const numberAt = (index) => (filtered ? filtered[index] : index + 1);
  const grid = makeGrid({
    label: "steps",
    height: 24,
    template: STEP_COLUMNS,
    columns: [{ name: "step", class: "mnb-r" }, { name: "socket" }, { name: "item" }, { name: "output" }, { name: "next" }, { name: "tokens", class: "mnb-r" }, { name: "cost", class: "mnb-r" }, { name: "s", class: "mnb-r" }, { name: "time" }],
    cells: (index) => stepCells(numberAt(index)),
    pick: (index) => look(numberAt(index)),
  });
  const filter = h("input", { class: "mnb-in mnb-find", type: "search", placeholder: "filter steps", "aria-label": "filter steps by socket, item or output" });
  const line = h("select", { class: "mnb-in", "aria-label": "which line of steps", onchange: () => send("line", { line: line.value === "" ? null : Number(line.value) }) });
  const play = button("▶", "play the steps", () => (playing ? stop() : start()), { class: "mnb-b mnb-small", "aria-label": "play the steps" });
  const speed = h("select", { class: "mnb-in", "aria-label": "how fast the steps are played" }, [["1×", 700], ["4×", 175], ["16×", 44]].map(([words, wait]) => h("option", { value: wait }, words)));
  const slider = h("input", { type: "range", class: "mnb-slider", min: "0", max: "0", "aria-label": "step that is looked at" });
  const now = button("Now", "show the present again", () => isEnabled(now) && (stop(), send("now")), { class: "mnb-b mnb-small" });
  const back = button("Back to here", "the cast goes on from here; the later steps are kept as a branch. Files stay as they are.", () => isEnabled(back) && send("back", { step: data.at }), { class: "mnb-b mnb-small" });
  const fork = button("Fork", "another cast from here, shown in place; this one stays as it is. Files stay as they are.", () => isEnabled(fork) && send("fork", { step: data.at ?? null }), { class: "mnb-b mnb-small" });
  controls.append(line, back, fork, now, play, speed, slider, filter);
  host.append(grid.node);

  let pending = null;
  const look = (number) => {
    clearTimeout(pending);
    pending = setTimeout(() => send("look", { step: number }), 60);
  };
  const start = () => {
    if (!data.total) return;
    let at = data.at !== null && data.at < data.total ? data.at : 0;
    setText(play, "‖");
    setAttr(play, "aria-label", "stop playing");
    const go = () => {
      at += 1;
      if (at > data.total) return stop();
      send("look", { step: at });
      playing = setTimeout(go, Number(speed.value));
    };
    playing = setTimeout(go, 0);
  };
  const stop = () => {
    clearTimeout(playing);
    playing = null;
    setText(play, "▶");
    setAttr(play, "aria-label", "play the steps");
  };
  slider.addEventListener("input", () => {
    stop();
    look(Number(slider.value));
  });
  let searching = 0, finding = null;
  filter.addEventListener("input", () => {
    clearTimeout(finding);
    finding = setTimeout(search, 200);
  });
  const search = async () => {
    const mine = ++searching;
    wanted = filter.value.trim();
    if (!wanted) {
      filtered = null;
      grid.update(data.total, true);
      return;
    }
    const found = await send.ask("find", { text: wanted });
    if (mine !== searching) return;
    filtered = found.numbers;
    grid.node.scrollTop = 0;
    grid.update(filtered.length);
  };

  const fetchRows = async (number) => {
    const first = Math.max(1, number - 60);
    if (asked.has(first)) return;
    asked.add(first);
    const mine = id;
    const found = await send.ask("rows", { first, last: number + 140 });
    if (mine !== id) return;
    for (const row of found.rows) rows.set(row[0], row);
    grid.draw();
  };
  const stepCells = (number) => {
    const row = rows.get(number);
    if (!row) {
      fetchRows(number);
      return { cells: [String(number), "…", "", "", "", "", "", "", ""], key: `? ${number}` };
    }
    const [, , name, item, out, verdict, next, tokens, cost, time, marks] = row;
    const here = number === (data.at ?? data.total);
    const sign = { yes: "✓ ", no: "✗ " }[verdict] || "";
    const waits = next === "waiting" && !data.busy, works = next === "waiting" && data.busy;
    const [over, seconds] = time;
    return {
      cells: [
        `${here ? "▸ " : ""}${number}`, name, item ? `${item[0]} ${item[1]}` : "",
        h("span", {}, sign && h("span", { class: verdict === "yes" ? "mnb-t-good" : "mnb-t-no" }, sign), h("span", { class: "mnb-code" }, out || (waits ? "waits" : works ? "works" : "")), marks.map((one) => h("span", { class: "mnb-mark" }, one))),
        h("span", { class: next.startsWith("failed") ? "mnb-t-bad" : verdict === "yes" ? "mnb-t-good" : verdict === "no" ? "mnb-t-no" : "" }, works ? "working" : next),
        tokens ? countWords(tokens) : "", cost ? cost.toFixed(cost < 1 ? 3 : 2) : "", over ? seconds : "", timeBar(time, data.span, { waits, no: verdict === "no" }),
      ],
      class: here ? "mnb-here" : "",
      key: JSON.stringify([row, here, data.span, works]),
    };
  };
  let madeLines = "";
  return {
    update(fresh) {
      data = fresh;
      if (data.id !== id) {
        id = data.id;
        rows = new Map();
        asked = new Set();
        filtered = null;
        filter.value = wanted = "";
      }
      for (const row of data.tail || []) rows.set(row[0], row);
      const lines = JSON.stringify(data.lines);
      if (lines !== madeLines) {
        madeLines = lines;
        clear(line).append(...(data.lines || []).map(([value, words]) => h("option", { value: value === null ? "" : String(value) }, words)));
      }
      line.hidden = (data.lines || []).length < 2;
      line.value = data.line === null || data.line === undefined ? "" : String(data.line);
      setAttr(slider, "max", String(data.total));
      if (document.activeElement !== slider || playing) slider.value = String(data.at ?? data.total);
      setAttr(slider, "aria-valuetext", data.at === null ? "the present" : data.at ? `step ${data.at}` : "the start");
      const looking = data.at !== null && data.at !== undefined;
      setEnabled(now, looking, "this is the present");
      back.hidden = !looking;
      setEnabled(back, data.can && data.line === null, "not while a step runs");
      setEnabled(fork, data.can && data.total > 0 && data.line === null, "not now");
      setText(fork, looking ? "Fork from here" : "Fork");
      setAttr(grid.node, "data-empty", wanted ? "no such step" : "no step yet: Step or Run begins");
      if (wanted) search();
      else {
        if (looking && data.at) grid.active = data.at - 1;
        grid.update(data.total, !looking);
        if (looking && data.at) grid.show(data.at - 1);
      }
    },
    destroy() {
      stop();
      clearTimeout(pending);
      clearTimeout(finding);
      grid.destroy();
    },
  };
}
