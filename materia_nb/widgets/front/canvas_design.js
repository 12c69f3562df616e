/** Designing with the mouse: connecting from a handle, dragging sockets, marking with a rectangle, dropping materia. */
import { h, svg, setAttr, MATERIA_TYPE } from "./dom.js";

/** Distance between the card and the centre of the handle, in pixels. */
const BESIDE = 8;
/** Distance below which a drag counts as a click, in pixels. */
const STILL = 4;

/** Return the rectangle between two points. @param {Point} a @param {Point} b */
export const between = (a, b) => ({ x: Math.min(a.x, b.x), y: Math.min(a.y, b.y), width: Math.abs(a.x - b.x), height: Math.abs(a.y - b.y) });

/** Return true if a point is inside a rectangle. @param {Point} at @param {{x: number, y: number, width: number, height: number}} box */
export const isInside = (at, { x, y, width, height }) => at.x > x && at.x < x + width && at.y > y && at.y < y + height;

/** @param {import("./canvas.js").Canvas} canvas */
export function canvasDesign(canvas) {
  const { graph, host, signal } = canvas;
  const handle = h("div", { class: "mnb-c-handle", title: "drag to the next socket", "aria-hidden": "true", hidden: true });
  const path = svg("path", { class: "mnb-c-rubber-line" }), frame = svg("rect", { class: "mnb-c-rubber-frame", rx: 4 });
  host.append(svg("svg", { class: "mnb-c-rubber", "aria-hidden": "true" }, path, frame), handle);
  let over = ""; // id of the socket that the mouse is over
  /** @type {string[]} */
  let marked = [];
  const inPicture = (/** @type {Cy} */ cy, /** @type {Point} */ { x, y }) => ({ x: (x - cy.pan().x) / cy.zoom(), y: (y - cy.pan().y) / cy.zoom() });
  const nodeAt = (/** @type {Cy} */ cy, /** @type {Point} */ point, /** @type {string} */ selector) => {
    const at = inPicture(cy, point);
    return cy.nodes(selector).toArray().find((node) => {
      const { x, y } = node.position();
      return Math.abs(at.x - x) <= node.data("w") / 2 + 4 && Math.abs(at.y - y) <= node.data("h") / 2 + 4;
    });
  };
  const placeHandle = () => {
    const { cy } = canvas, node = [over, canvas.flags.selected].map((id) => canvas.element(id)).find((socket) => socket?.hasClass("socket"));
    handle.hidden = !(cy && node && canvas.designs);
    if (handle.hidden || !node || !cy) return;
    const at = node.renderedPosition(), right = canvas.scene?.direction === "right", w = node.data("w") * cy.zoom(), high = node.data("h") * cy.zoom();
    // Next to the card: a small card can still be clicked in the middle, and the chip of an edge below stays free.
    handle.style.left = `${at.x + (right ? w / 2 + BESIDE : w * 0.3)}px`;
    handle.style.top = `${at.y + (right ? 0 : high / 2 + BESIDE)}px`;
    handle.dataset.element = node.id();
  };
  const mark = (/** @type {string[]} */ ids) => {
    const nodes = ids.flatMap((id) => canvas.element(id)?.toArray() ?? []);
    for (const id of marked) canvas.element(id)?.removeClass("marked");
    marked = nodes.map((node) => node.id());
    for (const node of nodes) node.addClass("marked");
  };
  const choose = (/** @type {string[]} */ ids) => {
    canvas.keep({ marked: ids });
    canvas.send("marquee", { ids });
  };

  /** Ask the palette for a new socket where a connection was dropped on empty ground; its card begins where the line ends. @param {string} from @param {Point} at */
  const askForSocket = (from, at) => {
    const { cy } = canvas, node = canvas.element(from), source = canvas.picks.get(from)?.[1];
    if (!cy || !node || !source) return;
    const end = inPicture(cy, at), dx = end.x - node.position("x"), dy = end.y - node.position("y"), box = host.getBoundingClientRect();
    const isSideways = Math.abs(dx) * node.data("h") > Math.abs(dy) * node.data("w");
    const x = end.x + (isSideways ? (Math.sign(dx) * node.data("w")) / 2 : 0), y = end.y + (isSideways ? 0 : (Math.sign(dy) * node.data("h")) / 2);
    graph.dispatchEvent(new CustomEvent("mnb-go-on", { bubbles: true, detail: { source, x: Math.round(x), y: Math.round(y), at: { x: box.x + at.x, y: box.y + at.y } } }));
  };

  handle.addEventListener("pointerdown", (event) => {
    const { cy } = canvas, from = canvas.element(handle.dataset.element);
    event.preventDefault();
    event.stopPropagation();
    if (!cy || !from?.nonempty()) return;
    handle.setPointerCapture(event.pointerId);
    const start = from.renderedPosition(), drag = new AbortController();
    /** @type {CyElements|undefined} */
    let aim;
    handle.addEventListener("pointermove", (now) => {
      const at = canvas.pointOf(now), next = nodeAt(cy, at, ".socket, .end");
      path.setAttribute("d", `M${start.x} ${start.y}L${at.x} ${at.y}`);
      if (aim !== next) aim?.removeClass("aimed");
      aim = next;
      aim?.addClass("aimed");
    }, { signal: drag.signal });
    const stop = (/** @type {PointerEvent} */ now) => {
      drag.abort();
      over = ""; // then the handle moves to the socket that is selected next
      path.removeAttribute("d");
      aim?.removeClass("aimed");
      if (now.type !== "pointerup") return;
      if (Math.hypot(now.clientX - event.clientX, now.clientY - event.clientY) < STILL) canvas.pick(from.id());
      else if (aim && aim.id() !== from.id()) canvas.send("connect", { from: from.id(), to: aim.id() });
      else if (!aim) askForSocket(from.id(), canvas.pointOf(now));
    };
    for (const end of /** @type {const} */ (["pointerup", "pointercancel"])) handle.addEventListener(end, stop, { signal: drag.signal });
  });

  // Shift-drag on the ground marks sockets; cytoscape must not treat it as a pan.
  graph.addEventListener("mousedown", (event) => {
    const { cy } = canvas;
    if (!cy || !event.shiftKey || event.button !== 0 || !canvas.designs || !cy.container().contains(/** @type {Node|null} */ (event.target))) return;
    event.preventDefault();
    event.stopPropagation();
    canvas.focus();
    const from = canvas.pointOf(event), hit = nodeAt(cy, from, ".socket")?.id(), drag = new AbortController();
    if (hit) return choose(marked.includes(hit) ? marked.filter((id) => id !== hit) : [...marked, hit]);
    window.addEventListener("mousemove", (now) => {
      for (const [name, value] of Object.entries(between(from, canvas.pointOf(now)))) setAttr(frame, name, value);
    }, { signal: drag.signal });
    window.addEventListener("mouseup", (now) => {
      drag.abort();
      setAttr(frame, "width", null);
      setAttr(frame, "height", null);
      const box = between(from, canvas.pointOf(now));
      choose(cy.nodes(".socket").toArray().filter((node) => isInside(node.renderedPosition(), box)).map((node) => node.id()));
    }, { signal: drag.signal });
  }, { capture: true, signal });

  const dragged = (/** @type {DragEvent} */ event) => {
    if (!canvas.designs || !event.dataTransfer?.types.includes(MATERIA_TYPE)) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = "copy";
    graph.classList.add("mnb-c-takes");
  };
  for (const name of /** @type {const} */ (["dragenter", "dragover"])) graph.addEventListener(name, dragged, { signal });
  graph.addEventListener("dragleave", (event) => graph.contains(/** @type {Node|null} */ (event.relatedTarget)) || graph.classList.remove("mnb-c-takes"), { signal });
  graph.addEventListener("drop", (event) => {
    graph.classList.remove("mnb-c-takes");
    const materia = event.dataTransfer?.getData(MATERIA_TYPE);
    if (!materia || !canvas.cy || !canvas.designs) return;
    event.preventDefault();
    event.stopPropagation();
    const at = inPicture(canvas.cy, canvas.pointOf(event));
    canvas.send("add", { materia, x: Math.round(at.x), y: Math.round(at.y) });
  }, { signal });

  return {
    place: placeHandle,
    /** Ask for a new socket after this one, in the free space next to it. @param {string} id */
    askForSocket(id) {
      const node = canvas.element(id);
      if (!node?.nonempty()) return;
      const right = canvas.scene?.direction === "right", { x, y } = node.renderedPosition(), zoom = canvas.cy?.zoom() ?? 1;
      askForSocket(id, { x: x + (right ? node.data("w") / 2 + 72 : 0) * zoom, y: y + (right ? 0 : node.data("h") / 2 + 54) * zoom });
    },
    get marked() {
      return marked;
    },
    clear: () => marked.length > 0 && choose([]),
    /** @param {string[]} ids */
    set: (ids) => String(ids) === String(marked) || mark(ids),
    /** Restore the marks after the graph has been rebuilt. */
    again: () => mark(marked),
    /** Listen to a cytoscape object. @param {Cy} cy */
    attach(cy) {
      cy.on("mouseover", "node.socket", ({ target }) => {
        over = target.id();
        placeHandle();
      });
      cy.on("mouseout", "node.socket", () => {
        over = "";
        setTimeout(() => handle.matches(":hover") || placeHandle(), 250);
      });
      handle.addEventListener("pointerleave", () => setTimeout(placeHandle, 250));
      cy.on("grab", "node.socket", ({ target }) => target.scratch("_mnb_at", { ...target.position() }));
      cy.on("drag", "node.socket", ({ target }) => {
        // While dragging, edges are straight and their chips move with them.
        const edges = target.connectedEdges().addClass("free"), chips = cy.nodes(".chip");
        for (const edge of edges.toArray()) chips.filter((chip) => chip.data("of") === edge.id()).position(edge.midpoint());
        placeHandle();
      });
      cy.on("dragfree", "node.socket", ({ target }) => {
        const at = target.position(), was = target.scratch("_mnb_at") || at;
        if (Math.hypot(at.x - was.x, at.y - was.y) >= 3) canvas.send("move", { id: target.id(), x: Math.round(at.x), y: Math.round(at.y) });
      });
    },
  };
}
