/** The canvas by keyboard: arrows go from socket to socket, letters do what the mouse does. */

const CANVAS_WAYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const CANVAS_CHORDS = { z: "undo", y: "redo", c: "copy", x: "cut", v: "paste", d: "duplicate" };

export const CANVAS_KEYS = "Arrows go from socket to socket, E through the ways out, Enter opens, slash finds, plus, minus and 0 zoom, M opens the menu";

/**
 * @param {any} canvas see canvas.js
 * @returns {(event: KeyboardEvent) => void}
 */
export function canvasKeys(canvas) {
  const at = (one) => (one.isNode() ? one.position() : one.midpoint());

  /** The element in a direction that is nearest, what stands straight there before what stands aslant. */
  const next = (from, [dx, dy], among) => {
    const here = at(from);
    let best = null, least = Infinity;
    for (const one of among) {
      if (one.id() === from.id()) continue;
      const there = at(one), x = there.x - here.x, y = there.y - here.y;
      const along = x * dx + y * dy, beside = Math.abs(x * dy - y * dx);
      if (along < 4 || beside > 2.5 * along) continue;
      const cost = along + 2.2 * beside;
      if (cost < least) [best, least] = [one, cost];
    }
    return best;
  };
  const nodes = (aiming) => canvas.cy.nodes(aiming ? ".socket, .end" : ".socket, .folded").toArray();
  const selected = () => canvas.cy.getElementById(canvas.selected || "");

  const arrow = (way) => {
    const aiming = canvas.connecting !== null;
    const from = aiming ? canvas.cy.getElementById(canvas.aim || canvas.connecting) : selected();
    const start = from.nonempty() ? from : canvas.cy.getElementById(canvas.current || canvas.entry || "");
    if (start.empty()) return;
    const found = from.nonempty() ? next(from, way, nodes(aiming)) : start;
    if (!found) return;
    if (aiming) canvas.aimAt(found.id());
    else canvas.pick(found.id());
    canvas.reach(found);
  };
  const cycle = () => {
    const one = selected();
    if (one.empty()) return;
    const source = one.isNode() ? one : one.source();
    const ways = source.outgoers("edge").filter((edge) => canvas.canPick(edge.id())).toArray();
    if (!ways.length) return;
    const place = one.isNode() ? -1 : ways.findIndex((edge) => edge.id() === one.id());
    canvas.pick(ways[(place + 1) % ways.length].id());
  };
  const drop = () => {
    const ids = canvas.marked;
    if (ids.length) canvas.send("delete", { ids });
    else if (canvas.selected) canvas.send("delete", { what: canvas.selected });
  };

  return (event) => {
    if (event.isComposing || event.altKey || event.target.closest?.("input, textarea, select, [role=menu], [role=listbox]")) return;
    const chord = event.ctrlKey || event.metaKey;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const designs = canvas.mode === "design";
    const acts = {
      Enter: () => (canvas.connecting !== null ? canvas.connect() : canvas.selected && canvas.send("open", { what: canvas.selected })),
      Escape: () => canvas.letGo(),
      "/": () => canvas.find(),
      "+": () => canvas.zoomBy(1.25),
      "=": () => canvas.zoomBy(1.25),
      "-": () => canvas.zoomBy(1 / 1.25),
      0: () => canvas.fit(),
      e: cycle,
      m: () => canvas.openMenu(),
      " ": () => canvas.foldSelected(),
      b: () => canvas.breakHere(),
      ContextMenu: () => canvas.openMenu(),
      ...(designs ? { Delete: drop, Backspace: drop, c: () => canvas.startConnect() } : {}),
      ...(event.shiftKey ? { F10: () => canvas.openMenu() } : {}),
    };
    if (chord) {
      const kind = designs && (key === "z" && event.shiftKey ? "redo" : CANVAS_CHORDS[key]);
      if (!kind) return;
      canvas.send(kind, { ids: canvas.marked.length ? canvas.marked : canvas.selectedSocket() });
    } else if (CANVAS_WAYS[event.key]) arrow(CANVAS_WAYS[event.key]);
    else if (acts[key]) acts[key]();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
}
