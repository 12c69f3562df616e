/** The surface: everything around the graph. Its parts draw slices of the state and send messages to the kernel. */
import { h, actButton, askLine, button, drawNotice, isNew, refill, setAttr, setText, startSettling } from "./dom.js";
import { makeTalk, markWhenGone } from "./wire.js";
import { closeMenu } from "./menu.js";
import { BODIES } from "./bodies.js";
import { actOfKey, moreEntries } from "./bar.js";
import { actOnSocket } from "./compare.js";
import { dockPart } from "./dock.js";
import { splitter } from "./splitter.js";
import { designParts } from "./design.js";

const KEEP_KEYS = { "data-lm-suppress-shortcuts": "true" };

/** Make an element of the surface whose key events do not reach the surrounding page. @param {string} name @param {Attributes} [attrs] */
const cell = (name, attrs = {}) => h("div", { class: `mnb-${name}`, ...KEEP_KEYS, ...attrs });

/** @type {Set<number>} the numbers of the views in the page */
const views = new Set();

/** The regions of one view, each labelled with its role and its cast, since a page may have several views. @param {Record<string, string>} labels of each part */
function regions(labels) {
  let number = 1;
  while (views.has(number)) number += 1;
  views.add(number);
  const cells = Object.fromEntries(Object.keys(labels).map((name) => [name, cell(name, { role: name === "bar" ? "toolbar" : "region" })]));
  return {
    cells,
    /** @param {string} [name] of the cast or design */
    call(name) {
      const of = `${name ? ` of ${name}` : ""}${number > 1 ? `, panel ${number}` : ""}`;
      for (const [part, label] of Object.entries(labels)) setAttr(cells[part], "aria-label", label + of);
    },
    end: () => views.delete(number),
  };
}

/**
 * Draw the surroundings of a graph whenever one of their slices changes; return the function that stops it.
 * @param {Model} model
 * @param {HTMLElement} el
 * @param {Record<string, Part>} slices the part that draws each slice
 * @param {(data: Data, box: HTMLElement|null) => void} onSurface called when the element is in its surface, and on each change of the surface
 */
function live(model, el, slices, onSurface) {
  const surface = () => /** @type {HTMLElement|null} */ (el.closest(".mnb-surface"));
  el.classList.add("mnb-front");
  setAttr(el, "data-lm-suppress-shortcuts", "true");
  el.addEventListener("keydown", (event) => event.stopPropagation());
  const settle = () => {
    const box = surface();
    setAttr(box ?? el, "data-lm-suppress-shortcuts", "true");
    onSurface(model.get("surface") ?? {}, box);
    if (box) setAttr(box, "data-narrow", box.clientWidth <= 640 ? "yes" : null);
  };
  const update = (/** @type {string} */ name) => {
    try {
      slices[name].update(model.get(name) ?? {});
    } catch (error) {
      // An error in one part must not stop the others.
      console.error(`materia_nb: ${name} cannot be drawn`, error);
    }
  };
  const listeners = Object.keys(slices).map((name) => ({ name: `change:${name}`, act: () => update(name) }));
  listeners.push({ name: "change:surface", act: settle });
  for (const { name, act } of listeners) model.on(name, act);
  // The surface is known only once the element is in the page; its width decides whether the parts stack.
  const watch = new ResizeObserver(settle);
  watch.observe(/** @type {HTMLElement} */ (el.querySelector(".mnb-bar")));
  settle();
  for (const name of Object.keys(slices)) update(name);
  return () => {
    watch.disconnect();
    closeMenu();
    for (const { name, act } of listeners) model.off(name, act);
    for (const part of Object.values(slices)) part.destroy?.();
    el.replaceChildren();
  };
}

/** The surface of a cast. @param {{model: Model, el: HTMLElement}} props */
export function castView({ model, el }) {
  /** @type {string[]} */
  const sent = [];
  const sends = makeTalk(model, (message) => {
    sent.unshift(JSON.stringify(message));
    sent.length = Math.min(sent.length, 12);
  });
  const send = /** @type {PanelSender} */ (sends);
  const surface = () => /** @type {HTMLElement|null} */ (el.closest(".mnb-surface"));
  const called = regions({ bar: "the bar", inspector: "inspector", dock: "timeline and items", palette: "palette" });
  const { bar, inspector, dock, palette } = called.cells;
  const kernelGone = h("div", { class: "mnb-gone", role: "alert" }), notice = h("div", { class: "mnb-notice" }), line = h("div", { class: "mnb-line", hidden: true });
  // The bar is above the graph, so it comes first in the tab order too.
  const above = h("div", { class: "mnb-front", ...KEEP_KEYS, onkeydown: (event) => event.stopPropagation() }, bar);
  el.append(above, palette, cell("over"), notice, inspector, dock, kernelGone, line);
  splitter(el, "columns");
  splitter(el, "rows");

  const folds = new Set();
  /** @type {Shell} */
  const shell = {
    // Input that was just sent is not unsent, although its answer may not have arrived.
    unsent: () => Object.values(slices).flatMap((part) => part.unsent?.() ?? []).filter((draft) => !sent.includes(JSON.stringify(draft.message))),
    folded: (name) => folds.has(name),
    fold(name) {
      if (!folds.delete(name)) folds.add(name);
      surface()?.setAttribute("data-folded", [...folds].join(" "));
    },
    askLine: (question, value, act, shape = question) => askLine(line, { words: question, value, shape }, act),
  };
  /** @type {{name: string, at: string}[]} the parts that the kernel provides */
  const rows = model.get("parts") ?? [];
  const docked = dockPart(dock, send, rows.filter((part) => part.at === "dock").map((part) => part.name));
  const barred = BODIES.bar(bar, send, shell), inspected = BODIES.inspector(inspector, send, shell);
  const design = designParts({ el, bar, palette, inspector, problems: docked.problems }, sends, () => moreEntries({ tone: "", tokens: 0, mode: "design" }, send, shell));
  /** @type {Record<string, Part>} */
  const slices = { bar: barred, inspector: inspected, ...Object.fromEntries(docked.parts.map((part) => [part.name, part.part])), design };
  const retryWithoutEdits = (/** @type {Data} */ { kind, ...fields }) => actButton("Continue without these edits", "continue, and discard the edits listed here", () => send(kind, fields));
  const drawGone = (resume = "") => {
    const command = `%load_ext materia_nb\n%materia resume ${resume}`;
    if (isNew(kernelGone, resume)) refill(kernelGone, h("span", {}, "The kernel of this panel is no longer running, but the cast is saved. Run this in a new kernel: "), h("code", {}, command.replace("\n", " ⏎ ")),
      button("Copy", "copy both lines", () => navigator.clipboard?.writeText(command)));
  };
  // Debugger keys, anywhere in the surface but not outside; handled before the graph sees them.
  const hear = new AbortController();
  let isListening = false, seenDigest = "";
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    const act = actOfKey(event);
    if (!act || surface()?.dataset.mode === "design") return;
    event.preventDefault();
    event.stopPropagation();
    if (!event.repeat) barred.press(act);
  };
  /** Handle a choice in the menu of a socket on the graph. @param {Event} event */
  const onSocket = (event) => actOnSocket(send, shell, /** @type {CustomEvent} */ (event).detail);
  const end = live(model, el, slices, (data, box) => {
    if (box && !isListening) {
      isListening = true;
      markWhenGone(model, box, hear.signal);
      box.addEventListener("keydown", onKey, { capture: true, signal: hear.signal });
      box.addEventListener("mnb-socket", onSocket, { signal: hear.signal });
    }
    if (box && above.parentNode !== box) box.prepend(above);
    // After a change, buttons do not act until the user could have read the new content.
    if (seenDigest !== (seenDigest = data.identity ?? "")) startSettling(box ?? el);
    design.mode(data.mode === "design", box);
    if (box) setAttr(box, "data-empty", data.empty && data.mode !== "design" && !data.alone ? "yes" : null);
    // A failure or a result takes the full height without moving the graph.
    if (box) setAttr(box, "data-tall", data.tall && data.mode !== "design" && !data.alone ? "yes" : null);
    if (box) Object.assign(box.dataset, { mode: data.mode || "cast", dock: data.dock ?? "", alone: rows.find((part) => part.name === data.alone)?.at ?? "" });
    called.call(data.name);
    docked.surface(data);
    drawNotice(notice, data.notice, () => send("dismiss"), data.notice?.without_edits && retryWithoutEdits(data.notice.without_edits));
    drawGone(data.resume);
  });
  return () => {
    hear.abort();
    end();
    called.end();
    above.remove();
  };
}

/** Draw design mode without a cast, as `%materia design` shows it. @param {{model: Model, el: HTMLElement}} props */
export function designView({ model, el }) {
  const send = makeTalk(model);
  const called = regions({ bar: "the bar", palette: "palette", inspector: "inspector", dock: "problems and changes" });
  const { bar, palette, inspector, dock: problems } = called.cells;
  const kernelGone = cell("gone", { role: "alert" });
  el.append(bar, palette, inspector, problems, kernelGone);
  splitter(el, "columns");
  splitter(el, "rows");
  const parts = designParts({ el, bar, palette, inspector, problems }, send);
  /** @type {HTMLElement|null} */
  let box = null;
  const design = {
    update(/** @type {Data} */ data) {
      parts.update(data);
      called.call(data.bar?.name);
      if (data.bar) setText(kernelGone, `The kernel of this design is no longer running. Run its cell again: ${data.bar.left}`);
      // Immediately show a selection from the form in the picture.
      if (box && isNew(box, data.selected ?? null)) box.dispatchEvent(new CustomEvent("mnb-selected", { detail: data.selected ?? null }));
    },
    destroy() {
      called.end();
      parts.destroy();
    },
  };
  return live(model, el, { design }, (_, now) => {
    if (now && now !== box) markWhenGone(model, now);
    box = now;
    if (box) box.dataset.mode = "design";
    parts.mode(true, box);
    design.update(model.get("design") ?? {});
  });
}
