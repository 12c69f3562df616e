/** The surface: everything around the graph. Its parts draw slices of the state and send messages to the kernel. */
import { h, clear, button, setAttr, sendMessage } from "./dom.js";
import { closeMenu } from "./menu.js";
import { BODIES } from "./bodies.js";
import { dockPart } from "./dock.js";
import { splitter } from "./splitter.js";
import { designBarPart, designKeys } from "./design_bar.js";
import { palettePart } from "./palette.js";
import { designInspectorPart } from "./design_inspector.js";
import { problemsPart } from "./problems.js";

/** @typedef {{kind: string, id: string}|null} Element_ */

/** What is selected; the kernel keeps it, so that all views agree. */
export function makeSelection(send) {
  const told = new Set();
  let now = null;
  return {
    get now() {
      return now;
    },
    /** @param {Element_} element */
    select(element) {
      send("select", { element });
    },
    onSelect(fn) {
      told.add(fn);
      return () => told.delete(fn);
    },
    set(element) {
      if (JSON.stringify(element) === JSON.stringify(now)) return;
      now = element;
      for (const fn of told) fn(now);
    },
  };
}

/** Ask the kernel for something and wait for its answer. */
function makeAsk(model, send) {
  const waiting = new Map();
  model.on("msg:custom", (message) => {
    const resolve = waiting.get(message?.token);
    if (!resolve) return;
    waiting.delete(message.token);
    resolve(message);
  });
  return (kind, values = {}) =>
    new Promise((resolve) => {
      const token = crypto.getRandomValues(new Uint32Array(2)).join("-");
      waiting.set(token, resolve);
      send(kind, { ...values, token });
    });
}

function shellView({ model, el }) {
  const sent = [];
  const send = (kind, values = {}) => {
    const message = { kind, ...values };
    sent.unshift(JSON.stringify(message));
    sent.length = Math.min(sent.length, 12);
    sendMessage(model, message);
  };
  send.ask = makeAsk(model, send);
  const selection = (send.selection = makeSelection(send));
  el.classList.add("mnb-front");
  el.setAttribute("data-lm-suppress-shortcuts", "true");
  el.addEventListener("keydown", (event) => event.stopPropagation());
  const surface = () => el.closest(".mnb-surface");

  const cell = (name, attrs = {}) => h("div", { class: `mnb-${name}`, "data-lm-suppress-shortcuts": "true", ...attrs });
  const bar = cell("bar", { role: "toolbar", "aria-label": "cast" });
  const over = cell("over");
  const inspector = cell("inspector", { role: "region", "aria-label": "inspector" });
  const dock = cell("dock", { role: "region", "aria-label": "timeline and items" });
  const palette = cell("palette", { role: "region", "aria-label": "palette" });
  const gone = h("div", { class: "mnb-gone", role: "alert" });
  const notice = h("div", { class: "mnb-notice" });
  const line = h("div", { class: "mnb-line", hidden: true });
  // The bar stands above the graph, so it comes before it for those who go by the Tab key.
  const above = h("div", { class: "mnb-front", "data-lm-suppress-shortcuts": "true", onkeydown: (event) => event.stopPropagation() }, bar);
  el.append(above, palette, over, notice, inspector, dock, gone, line);

  const folds = new Set();
  const shell = {
    selection,
    // What was sent just now is not unsent, though its answer may not be there yet.
    unsent: () => parts.flatMap((part) => part.unsent?.() || []).filter((one) => !sent.includes(JSON.stringify(one.message))),
    folded: (name) => folds.has(name),
    fold(name) {
      if (!folds.delete(name)) folds.add(name);
      surface()?.setAttribute("data-folded", [...folds].join(" "));
    },
    /** Ask for one line of text, under the bar. */
    askLine(words, value, act) {
      const field = h("input", { class: "mnb-in", value, "aria-label": words, placeholder: words });
      const done = (ok) => {
        line.hidden = true;
        clear(line);
        if (ok) act(field.value.trim());
      };
      field.addEventListener("keydown", (event) => {
        if (event.key === "Enter") done(true);
        if (event.key === "Escape") done(false);
      });
      clear(line).append(h("span", {}, words), field, button("OK", words, () => done(true), { class: "mnb-b mnb-main" }), button("Cancel", "leave it", () => done(false)));
      line.hidden = false;
      field.focus();
      field.select();
    },
  };
  const parts = [];
  const slices = new Map();
  const mount = (slice, made) => {
    parts.push(made);
    slices.set(slice, made);
  };
  // Of each part its name and where it stands; which there are is the kernel's to say.
  const rows = model.get("parts") || [];
  mount("bar", BODIES.bar(bar, send, shell));
  mount("inspector", BODIES.inspector(inspector, send, shell));
  const docked = dockPart(dock, send, rows.filter((one) => one.at === "dock").map((one) => one.name));
  for (const [name, made] of Object.entries(docked.made)) mount(name, made);
  parts.push(splitter(el, "columns", send), splitter(el, "rows", send));

  const designed = designParts({ el, bar, palette, inspector, problems: docked.problems }, send);
  mount("design", designed);

  const setSurface = (data) => {
    const box = surface();
    designed.mode(data.mode === "design", box);
    if (box) {
      box.dataset.mode = data.mode || "cast";
      box.dataset.alone = rows.find((one) => one.name === data.alone)?.at || "";
      box.setAttribute("data-lm-suppress-shortcuts", "true");
    }
    selection.set(data.selected || null);
    docked.surface(data);
    const told = data.notice || {};
    if (notice.dataset.told !== JSON.stringify(told)) {
      notice.dataset.told = JSON.stringify(told);
      clear(notice);
      notice.hidden = !told.words;
      if (told.words) {
        notice.dataset.tone = told.tone;
        notice.append(
          h("span", { role: told.tone === "bad" ? "alert" : "status" }, `${told.tone === "bad" ? "✖ " : ""}${told.words}`),
          button("×", "take this away", () => send("heard"), { class: "mnb-x", "aria-label": "take this message away" }),
        );
      }
    }
    if (gone.dataset.resume !== data.resume) {
      gone.dataset.resume = data.resume || "";
      const command = `%load_ext materia_nb\n%materia resume ${data.resume || ""}`;
      clear(gone).append(
        h("span", {}, "The kernel of this panel is gone; the cast is kept. In a new kernel: "),
        h("code", {}, command.replace("\n", " ⏎ ")),
        button("Copy", "copy these two lines", () => navigator.clipboard?.writeText(command)),
      );
    }
  };
  const update = (name) => {
    const data = model.get(name) || {};
    if (name === "surface") setSurface(data);
    try {
      slices.get(name)?.update(data);
    } catch (error) {
      // One part that cannot be drawn must not take the others with it.
      console.error(`materia_nb: ${name} cannot be drawn`, error);
    }
  };
  const names = ["surface", ...slices.keys()];
  const ends = names.map((name) => {
    const changed = () => update(name);
    model.on(`change:${name}`, changed);
    return () => model.off(`change:${name}`, changed);
  });
  // Its place in the page is known only once it is there; its width says whether it stacks.
  const watch = new ResizeObserver(() => {
    const box = surface();
    if (!box) return;
    if (above.parentNode !== box) box.prepend(above);
    setSurface(model.get("surface") || {});
    setAttr(box, "data-narrow", box.clientWidth <= 640 ? "yes" : null);
  });
  watch.observe(bar);
  for (const name of names) update(name);
  return () => {
    watch.disconnect();
    closeMenu();
    for (const end of ends) end();
    for (const part of parts) part.destroy?.();
    above.remove();
    clear(el);
  };
}

/** The parts of design mode; they are made when it is first switched to. */
function designParts(cells, send) {
  let made = null, on = false, box = null, unkey = null, last = {};
  const side = h("div", { class: "mnb-d-side", hidden: true });
  const tools = h("span", { class: "mnb-d-bar", hidden: true });
  cells.inspector.append(side);
  cells.bar.querySelector(".mnb-modes").after(tools);
  const picked = (event) => {
    const { kind, id, add } = event.detail || {};
    if (on) send("pick", { what: kind ? [kind, id] : null, add: add === true });
  };
  return {
    mode(now, surface) {
      if (now && !made) made = [designBarPart(tools, send), palettePart(cells.palette, send), designInspectorPart(side, send), problemsPart(cells.problems, send)];
      if (surface && surface !== box) {
        box = surface;
        box.addEventListener("mnb-pick", picked);
      }
      if (now === on) return;
      on = now;
      side.hidden = tools.hidden = !on;
      unkey?.();
      unkey = on && box ? designKeys(box, send) : null;
      this.update(last);
    },
    update(data) {
      last = data;
      if (on && data.bar) for (const part of made) part.update(data);
    },
    destroy() {
      box?.removeEventListener("mnb-pick", picked);
      unkey?.();
      for (const part of made || []) part.destroy?.();
    },
  };
}

export default { render: shellView };
