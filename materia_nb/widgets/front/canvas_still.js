/** A graph that is too large for a canvas: one clickable picture with marks over it, which follows the cast. */
import { h, refill } from "./dom.js";
import { pictureAddress, coloured } from "./canvas_style.js";

/** @param {(element: string) => void} choose called with the element that was clicked */
export function canvasStill(choose) {
  const image = h("img", { alt: "", draggable: "false" });
  const marks = h("div", { class: "mnb-c-marks" });
  const sheet = h("div", { class: "mnb-c-sheet" }, image, marks);
  const box = h("div", { class: "mnb-c-still", hidden: true, tabindex: "0", role: "group" }, sheet);
  /** @type {Map<string, HTMLElement>} */
  const rings = new Map();
  let scene = /** @type {Scene} */ (/** @type {unknown} */ (null)), k = 1;

  /** A node in coordinates of the picture's corner. @param {string} id @returns {SceneNode|undefined} */
  const boxOf = (id) => {
    const sceneNode = scene.nodes.find((node) => node.id === id);
    return sceneNode && { ...sceneNode, x: sceneNode.x - scene.corner[0], y: sceneNode.y - scene.corner[1] };
  };
  const size = () => {
    Object.assign(sheet.style, { width: `${scene.size[0] * k}px`, height: `${scene.size[1] * k}px` });
    for (const [id, ring] of rings) positionRing(ring, boxOf(id));
  };
  const positionRing = (/** @type {HTMLElement} */ ring, /** @type {SceneNode|undefined} */ node) => {
    if (!node) return ring.remove();
    Object.assign(ring.style, { left: `${(node.x - node.w / 2) * k - 5}px`, top: `${(node.y - node.h / 2) * k - 5}px`, width: `${node.w * k}px`, height: `${node.h * k}px` });
  };
  const hit = (/** @type {MouseEvent} */ event) => {
    const at = sheet.getBoundingClientRect(), x = (event.clientX - at.x) / k + scene.corner[0], y = (event.clientY - at.y) / k + scene.corner[1];
    const within = (/** @type {SceneNode} */ node) => node.pick && Math.abs(x - node.x) <= node.w / 2 && Math.abs(y - node.y) <= node.h / 2;
    return scene.nodes.filter(within).sort((a, b) => a.w * a.h - b.w * b.h)[0];
  };
  sheet.addEventListener("click", (event) => {
    const node = hit(event);
    if (node) choose(node.id);
  });
  return {
    box,
    hit,
    /** @param {Scene} next @param {Colours} colours */
    set(next, colours) {
      scene = next;
      this.colours(colours);
      size();
    },
    /** @param {Colours} colours */
    colours(colours) {
      image.src = pictureAddress(coloured(scene.still ?? "", colours));
    },
    /** Draw rings over the picture for the current look of its elements. @param {Look} look @param {string|null} [selected] */
    look(look, selected) {
      rings.clear();
      refill(marks);
      for (const [id, elementLook] of Object.entries(look)) {
        const classes = (elementLook.classes || "").split(" ").filter((name) => ["current", "failed", "break", "taken"].includes(name));
        if (id === selected) classes.push("selected");
        const node = classes.length ? boxOf(id) : null;
        if (!node) continue;
        const ring = h("div", { class: `mnb-c-ring ${classes.map((name) => `mnb-c-is-${name}`).join(" ")}` });
        if (classes.includes("break")) ring.append(h("i", { class: "mnb-c-stop" }));
        rings.set(id, ring);
        positionRing(ring, node);
        marks.append(ring);
      }
    },
    /** @param {string} id */
    reach(id) {
      const node = boxOf(id);
      if (!node) return;
      const x = node.x * k, y = node.y * k;
      const out = x < box.scrollLeft + 40 || x > box.scrollLeft + box.clientWidth - 40 || y < box.scrollTop + 20 || y > box.scrollTop + box.clientHeight - 20;
      if (out) box.scrollTo({ left: x - box.clientWidth / 2, top: y - box.clientHeight / 2 });
    },
    fit() {
      k = Math.max(0.05, Math.min(1, (box.clientWidth - 4) / scene.size[0], (box.clientHeight - 4) / scene.size[1]));
      size();
    },
    /** @param {number} factor */
    zoomBy(factor) {
      const x = (box.scrollLeft + box.clientWidth / 2) / k, y = (box.scrollTop + box.clientHeight / 2) / k;
      k = Math.min(2, Math.max(0.05, k * factor));
      size();
      box.scrollTo({ left: x * k - box.clientWidth / 2, top: y * k - box.clientHeight / 2 });
    },
    /** The visible part of the picture: left, top, width, height. @returns {[number, number, number, number]} */
    seen: () => [box.scrollLeft / k + scene.corner[0], box.scrollTop / k + scene.corner[1], box.clientWidth / k, box.clientHeight / k],
    go: (/** @type {number} */ x, /** @type {number} */ y) => box.scrollTo({ left: (x - scene.corner[0]) * k - box.clientWidth / 2, top: (y - scene.corner[1]) * k - box.clientHeight / 2 }),
  };
}
