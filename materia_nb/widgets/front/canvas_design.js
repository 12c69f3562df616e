/** Designing with the mouse: connecting from a handle, dragging, marking with a frame, dropping in what is dragged. */
import { h, svg, MATERIA_TYPE } from "./dom.js";

const CANVAS_BESIDE = 8; // how far the middle of the handle stands from the card

/**
 * @param {HTMLElement} graph the box of the canvas
 * @param {HTMLElement} host the layer over it
 * @param {any} canvas see canvas.js
 */
export function canvasDesign(graph, host, canvas) {
  const handle = h("div", { class: "mnb-c-handle", title: "drag to what comes next", "aria-hidden": "true", hidden: true });
  const path = svg("path", { class: "mnb-c-rubber-line" });
  const frame = svg("rect", { class: "mnb-c-rubber-frame", rx: 4 });
  const rubber = svg("svg", { class: "mnb-c-rubber", "aria-hidden": "true" }, path, frame);
  host.append(rubber, handle);
  let over = null; // id of the socket that the handle stands at
  let marked = [];
  const designs = () => canvas.mode === "design" && !canvas.isStill;
  const local = (event) => {
    const box = host.getBoundingClientRect();
    return { x: event.clientX - box.x, y: event.clientY - box.y };
  };

  const place = () => {
    const one = canvas.cy?.getElementById(over || canvas.selected || "");
    const shows = designs() && one?.nonempty() && one.hasClass("socket");
    handle.hidden = !shows;
    if (!shows) return;
    const at = one.renderedPosition(), zoom = canvas.cy.zoom();
    const right = canvas.direction === "right";
    // Beside the card, so that of a small one too the middle can be clicked, and not on the chip of a line below it.
    handle.style.left = `${at.x + (right ? (one.data("w") / 2) * zoom + CANVAS_BESIDE : one.data("w") * 0.3 * zoom)}px`;
    handle.style.top = `${at.y + (right ? 0 : (one.data("h") / 2) * zoom + CANVAS_BESIDE)}px`;
    handle.dataset.element = one.id();
  };
  /** Let lines go straight, and what stands on them go with them. */
  const loosen = (edges) => {
    edges.addClass("free");
    const chips = canvas.cy.nodes(".chip");
    for (const one of edges.toArray()) chips.filter((chip) => chip.data("of") === one.id()).position(one.midpoint());
  };
  const mark = (nodes) => {
    for (const one of marked) canvas.cy.getElementById(one).removeClass("marked");
    marked = nodes.map((one) => one.id());
    for (const one of nodes) one.addClass("marked");
  };

  const choose = (ids) => {
    canvas.keep({ marked: ids });
    canvas.send("marquee", { ids });
  };

  handle.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    event.stopPropagation();
    const from = canvas.cy.getElementById(handle.dataset.element);
    if (from.empty()) return;
    handle.setPointerCapture(event.pointerId);
    canvas.hover.hide();
    const start = from.renderedPosition();
    let aim = null;
    const move = (now) => {
      const at = local(now);
      path.setAttribute("d", `M${start.x} ${start.y}L${at.x} ${at.y}`);
      const next = canvas.nodeAt(at.x, at.y, ".socket, .end");
      if (aim && aim !== next) aim.removeClass("aimed");
      aim = next;
      aim?.addClass("aimed");
    };
    const stop = (now) => {
      handle.removeEventListener("pointermove", move);
      handle.removeEventListener("pointerup", stop);
      handle.removeEventListener("pointercancel", stop);
      path.removeAttribute("d");
      aim?.removeClass("aimed");
      if (now.type !== "pointerup") return;
      if (Math.hypot(now.clientX - event.clientX, now.clientY - event.clientY) < 4) canvas.pick(from.id());
      else if (aim && aim.id() !== from.id()) canvas.send("connect", { from: from.id(), to: aim.id() });
    };
    handle.addEventListener("pointermove", move);
    handle.addEventListener("pointerup", stop);
    handle.addEventListener("pointercancel", stop);
  });

  // With Shift, a frame on the ground marks sockets; cytoscape must not take it for a pan.
  const press = (event) => {
    if (!event.shiftKey || event.button !== 0 || !designs() || !canvas.inCanvas(event.target)) return;
    const from = local(event);
    const hit = canvas.nodeAt(from.x, from.y, ".socket");
    event.preventDefault();
    event.stopPropagation();
    canvas.focus();
    if (hit) {
      const now = marked.includes(hit.id()) ? marked.filter((one) => one !== hit.id()) : [...marked, hit.id()];
      choose(now);
      return;
    }
    const move = (now) => {
      const at = local(now);
      frame.setAttribute("x", Math.min(at.x, from.x));
      frame.setAttribute("y", Math.min(at.y, from.y));
      frame.setAttribute("width", Math.abs(at.x - from.x));
      frame.setAttribute("height", Math.abs(at.y - from.y));
    };
    const stop = (now) => {
      window.removeEventListener("mousemove", move);
      window.removeEventListener("mouseup", stop);
      frame.removeAttribute("width");
      frame.removeAttribute("height");
      const at = local(now);
      const inside = canvas.cy.nodes(".socket").filter((one) => {
        const p = one.renderedPosition();
        return p.x > Math.min(at.x, from.x) && p.x < Math.max(at.x, from.x) && p.y > Math.min(at.y, from.y) && p.y < Math.max(at.y, from.y);
      });
      choose(inside.map((one) => one.id()));
    };
    window.addEventListener("mousemove", move);
    window.addEventListener("mouseup", stop);
  };
  graph.addEventListener("mousedown", press, true);

  const dragged = (event) => {
    if (!designs() || !event.dataTransfer?.types.includes(MATERIA_TYPE)) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = "copy";
    graph.classList.add("mnb-c-takes");
  };
  const left = (event) => graph.contains(event.relatedTarget) || graph.classList.remove("mnb-c-takes");
  const dropped = (event) => {
    graph.classList.remove("mnb-c-takes");
    const materia = event.dataTransfer?.getData(MATERIA_TYPE);
    if (!materia || !designs()) return;
    event.preventDefault();
    event.stopPropagation();
    const at = canvas.inPicture(local(event));
    canvas.send("drop", { materia, x: Math.round(at.x), y: Math.round(at.y) });
  };
  const drags = [["dragenter", dragged], ["dragover", dragged], ["dragleave", left], ["drop", dropped]];
  for (const [name, act] of drags) graph.addEventListener(name, act);

  return {
    place, loosen,
    get marked() {
      return marked;
    },
    clear() {
      if (marked.length) choose([]);
    },
    set: (ids) => String(ids) === String(marked) || mark(ids.map((id) => canvas.cy.getElementById(id)).filter((one) => one.nonempty())),
    /** The elements of another graph are there: what was marked is marked again, as far as it is there. */
    again: () => mark(marked.map((one) => canvas.cy.getElementById(one)).filter((one) => one.nonempty())),
    /** Listen to a cytoscape object. */
    attach(cy) {
      cy.on("mouseover", "node.socket", (event) => {
        over = event.target.id();
        place();
      });
      cy.on("mouseout", "node.socket", () => {
        over = null;
        setTimeout(() => handle.matches(":hover") || place(), 250);
      });
      handle.addEventListener("pointerleave", () => setTimeout(place, 250));
      cy.on("grab", "node.socket", (event) => {
        canvas.hover.hide();
        event.target.scratch("_mnb_at", { ...event.target.position() });
      });
      cy.on("drag", "node.socket", (event) => {
        loosen(event.target.connectedEdges());
        place();
      });
      cy.on("dragfree", "node.socket", (event) => {
        const at = event.target.position(), was = event.target.scratch("_mnb_at") || at;
        if (Math.hypot(at.x - was.x, at.y - was.y) < 3) return;
        canvas.send("move", { id: event.target.id(), x: Math.round(at.x), y: Math.round(at.y) });
      });
    },
    destroy() {
      graph.removeEventListener("mousedown", press, true);
      for (const [name, act] of drags) graph.removeEventListener(name, act);
    },
  };
}
