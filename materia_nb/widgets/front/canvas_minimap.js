/** A minimap next to a large graph, for orientation and navigation. */
import { h, svg, refill } from "./dom.js";

const WIDE = 132, HIGH = 92;
/** Maximum number of sockets of a graph without a minimap. */
const LARGE = 30;

/** @param {HTMLElement} graph the box of the graph @param {(x: number, y: number) => void} go called with a point of the picture */
export function canvasMinimap(graph, go) {
  const drawing = svg("svg", { width: WIDE, height: HIGH, "aria-hidden": "true" });
  const box = h("div", { class: "mnb-c-map", title: "the whole graph; click or drag to go there" }, drawing);
  const frame = svg("rect", { class: "mnb-c-frame" });
  /** @type {Map<string, SVGElement>} */
  const dots = new Map();
  let k = 1, edge = [0, 0];
  const to = (/** @type {PointerEvent} */ event) => {
    const at = drawing.getBoundingClientRect();
    go((event.clientX - at.x - edge[0]) / k, (event.clientY - at.y - edge[1]) / k);
  };
  box.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    event.stopPropagation();
    box.setPointerCapture(event.pointerId);
    to(event);
  });
  box.addEventListener("pointermove", (event) => event.buttons && to(event));
  return {
    box,
    /** @param {Scene} scene */
    set(scene) {
      graph.classList.toggle("mnb-c-has-map", scene.sockets > LARGE);
      dots.clear();
      refill(drawing);
      const [wide, high] = scene.size, [x, y] = scene.corner;
      k = Math.min((WIDE - 6) / wide, (HIGH - 6) / high);
      edge = [(WIDE - wide * k) / 2 - x * k, (HIGH - high * k) / 2 - y * k];
      for (const node of scene.nodes) {
        if (node.classes === "anchor" || node.classes === "chip") continue;
        const dot = svg("rect", {
          x: edge[0] + (node.x - node.w / 2) * k, y: edge[1] + (node.y - node.h / 2) * k,
          width: Math.max(1.5, node.w * k), height: Math.max(1.5, node.h * k), rx: 1,
          class: `mnb-c-dot mnb-c-dot-${node.classes.split(" ")[0]}`,
        });
        dots.set(node.id, dot);
        drawing.append(dot);
      }
      drawing.append(frame);
    },
    /** @param {string|null} [current] @param {string|null} [selected] */
    mark(current, selected) {
      for (const [id, dot] of dots) {
        dot.classList.toggle("mnb-c-now", id === current);
        dot.classList.toggle("mnb-c-picked", id === selected);
      }
    },
    /** Show the visible part, in pixels of the picture. @param {number} x @param {number} y @param {number} wide @param {number} high */
    frame(x, y, wide, high) {
      const at = { x: edge[0] + x * k, y: edge[1] + y * k, width: Math.max(2, wide * k), height: Math.max(2, high * k) };
      for (const [name, value] of Object.entries(at)) frame.setAttribute(name, String(value));
    },
  };
}
