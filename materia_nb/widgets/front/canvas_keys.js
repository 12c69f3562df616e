/** Keyboard control of the canvas: arrow keys move between sockets, and letters replace mouse actions. */
import { nearest } from "./canvas_state.js";
import { CHORDS } from "./design_bar.js";

/** @type {Record<string, Size>} */
const DIRECTIONS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/** Each key and its effect, for the legend and for screen readers. @type {[keys: string, does: string][]} */
export const KEYS = [["Arrows", "go from socket to socket"], ["E", "cycles through the edges of a socket"], ["Enter", "opens the selected part"], ["/", "finds"], ["+ − 0", "zoom, and show the whole graph"],
  ["M", "opens the menu"], ["Space", "folds a loop"]];
/** @type {[keys: string, does: string][]} */
export const DESIGN_KEYS = [["C", "connects"], ["N", "adds the next socket"], ["1 2 3 …", "set when the selected edge is taken"], ["[ ]", "check it earlier or later"], ["Delete", "removes the selected part"]];
export const KEYS_IN_WORDS = `Keys: ${KEYS.map((keyAndEffect) => keyAndEffect.join(" ")).join(", ")}; while designing ${DESIGN_KEYS.map((keyAndEffect) => keyAndEffect.join(" ")).join(", ")}`;

/** @param {import("./canvas.js").Canvas} canvas @returns {(event: KeyboardEvent) => void} */
export function canvasKeys(canvas) {
  const at = (/** @type {CyElements} */ element) => (element.isNode() ? element.position() : element.midpoint());
  const arrow = (/** @type {Size} */ direction) => {
    const { flags: { selected, current }, scene, cy, connecting } = canvas, aiming = connecting !== null;
    const from = canvas.element(aiming ? canvas.aim ?? connecting : selected);
    const candidates = cy?.nodes(aiming ? ".socket, .end" : ".socket, .folded").toArray().filter((node) => node.id() !== from?.id()) ?? [];
    const next = from?.nonempty() ? candidates[nearest(at(from), direction, candidates.map(at))] : canvas.element(current || scene?.entry);
    if (!next?.nonempty()) return;
    if (aiming) canvas.aimAt(next.id());
    else canvas.pick(next.id());
    canvas.show(next.id());
  };
  const cycleThroughEdges = () => {
    const element = canvas.element(canvas.flags.selected);
    if (!element?.nonempty()) return;
    const edgeIds = (element.isNode() ? element : element.source()).outgoers("edge").toArray().map((edge) => edge.id()).filter((id) => canvas.kind(id));
    if (edgeIds.length) canvas.pick(edgeIds[(edgeIds.indexOf(element.id()) + 1) % edgeIds.length]);
  };
  const deleteSelection = () => {
    const { marked } = canvas.design, { selected } = canvas.flags;
    if (marked.length) canvas.send("delete", { ids: marked });
    else if (selected) canvas.send("delete", { of: selected });
  };
  const open = () => (canvas.connecting !== null ? canvas.connect() : canvas.flags.selected && canvas.send("open", { element: canvas.flags.selected }));
  const larger = () => canvas.view.zoomBy(1.25), menu = () => canvas.openMenuHere();
  /** @type {Record<string, () => unknown>} */
  const acts = {
    Enter: open, Escape: () => canvas.cancelConnect(), "/": () => canvas.finder.open(), "+": larger, "=": larger, "-": () => canvas.view.zoomBy(1 / 1.25), 0: () => canvas.fit(),
    e: cycleThroughEdges, m: menu, ContextMenu: menu, " ": () => canvas.foldSelected(), b: () => canvas.toggleBreakpoint(),
  };
  /** @type {Record<string, () => unknown>} */
  const designing = { "[": () => canvas.reorder(-1), "]": () => canvas.reorder(1), Delete: deleteSelection, Backspace: deleteSelection, c: () => canvas.startConnect(), n: () => canvas.socket && canvas.design.askForSocket(canvas.socket) };

  return (event) => {
    if (event.isComposing || event.altKey || (event.target instanceof Element && event.target.closest("input, textarea, select, [role=menu], [role=listbox]"))) return;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key, { marked } = canvas.design;
    const act = (canvas.designs && (designing[key] || (/^[1-9]$/.test(key) && (() => canvas.setCondition(Number(key) - 1))))) || acts[key] || (event.shiftKey && key === "F10" && menu);
    if (event.ctrlKey || event.metaKey) {
      const kind = key === "z" && event.shiftKey ? "redo" : CHORDS[key];
      if (!canvas.designs || !kind || kind === "save") return;
      canvas.send(kind, { ids: marked.length ? marked : canvas.socket ? [canvas.socket] : [] });
    } else if (DIRECTIONS[event.key]) arrow(DIRECTIONS[event.key]);
    else if (act) act();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
}
