/** A small map of a large picture, to see where one is and to go elsewhere. */
import { h, svg, clear } from "./dom.js";

const CANVAS_MAP = [132, 92];

/**
 * @param {() => any} getCy
 * @param {(x: number, y: number) => void} go called with a point of the picture
 */
export function canvasMinimap(getCy, go) {
  const drawing = svg("svg", { width: CANVAS_MAP[0], height: CANVAS_MAP[1], "aria-hidden": "true" });
  const box = h("div", { class: "mnb-c-map", title: "the whole graph; click or drag to go there", hidden: true }, drawing);
  const frame = svg("rect", { class: "mnb-c-frame" });
  const dots = new Map();
  let k = 1;
  let edge = [0, 0];

  const to = (event) => {
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
    /** @param {{size: number[], nodes: any[], sockets: number}} scene */
    set(scene, always) {
      box.hidden = !(always || scene.sockets > 30);
      dots.clear();
      clear(drawing);
      if (box.hidden) return;
      const [w, h] = scene.size;
      k = Math.min((CANVAS_MAP[0] - 6) / w, (CANVAS_MAP[1] - 6) / h);
      edge = [(CANVAS_MAP[0] - w * k) / 2, (CANVAS_MAP[1] - h * k) / 2];
      for (const one of scene.nodes) {
        if (one.classes === "anchor" || one.classes === "chip") continue;
        const dot = svg("rect", {
          x: edge[0] + (one.x - one.w / 2) * k, y: edge[1] + (one.y - one.h / 2) * k,
          width: Math.max(1.5, one.w * k), height: Math.max(1.5, one.h * k), rx: 1,
          class: `mnb-c-dot mnb-c-dot-${one.classes.split(" ")[0]}`,
        });
        dots.set(one.id, dot);
        drawing.append(dot);
      }
      drawing.append(frame);
    },
    mark(current, selected) {
      for (const [id, dot] of dots) {
        dot.classList.toggle("mnb-c-now", id === current);
        dot.classList.toggle("mnb-c-picked", id === selected);
      }
    },
    /** What is seen of the picture, in its pixels. */
    frame(x, y, w, h) {
      if (box.hidden) return;
      frame.setAttribute("x", edge[0] + x * k);
      frame.setAttribute("y", edge[1] + y * k);
      frame.setAttribute("width", Math.max(2, w * k));
      frame.setAttribute("height", Math.max(2, h * k));
    },
  };
}
