/** A graph that is too large for a canvas: one picture, with marks laid over it; it can be clicked on, and follows. */
import { h, clear } from "./dom.js";
import { canvasAddress, canvasColoured } from "./canvas_style.js";

/** @param {(element: string) => void} choose called with the element that was clicked */
export function canvasStill(choose) {
  const image = h("img", { alt: "", draggable: "false" });
  const marks = h("div", { class: "mnb-c-marks" });
  const sheet = h("div", { class: "mnb-c-sheet" }, image, marks);
  const box = h("div", { class: "mnb-c-still", hidden: true, tabindex: "0", role: "group" }, sheet);
  const rings = new Map();
  let scene = null;
  let k = 1;

  const boxOf = (id) => scene?.nodes.find((one) => one.id === id);
  const size = () => {
    sheet.style.width = `${scene.size[0] * k}px`;
    sheet.style.height = `${scene.size[1] * k}px`;
    for (const [id, ring] of rings) put(ring, boxOf(id));
  };
  const put = (ring, one) => {
    if (!one) return ring.remove();
    ring.style.left = `${(one.x - one.w / 2) * k - 5}px`;
    ring.style.top = `${(one.y - one.h / 2) * k - 5}px`;
    ring.style.width = `${one.w * k}px`;
    ring.style.height = `${one.h * k}px`;
  };
  const hit = (event) => {
    const at = sheet.getBoundingClientRect(), x = (event.clientX - at.x) / k, y = (event.clientY - at.y) / k;
    const within = (one) => one.pick && Math.abs(x - one.x) <= one.w / 2 && Math.abs(y - one.y) <= one.h / 2;
    return scene.nodes.filter(within).sort((a, b) => a.w * a.h - b.w * b.h)[0];
  };
  sheet.addEventListener("click", (event) => {
    const one = hit(event);
    if (one) choose(one.id);
  });
  return {
    box,
    hit,
    set(next, colours) {
      scene = next;
      image.src = canvasAddress(canvasColoured(scene.still, colours));
      size();
    },
    colours(colours) {
      if (scene?.still) image.src = canvasAddress(canvasColoured(scene.still, colours));
    },
    /** Lay marks over the picture, from how its elements look. */
    look(look, selected) {
      rings.clear();
      clear(marks);
      for (const [id, one] of Object.entries(look)) {
        const classes = (one.classes || "").split(" ").filter((name) => ["current", "failed", "break", "taken"].includes(name));
        if (id === selected) classes.push("selected");
        const node = classes.length ? boxOf(id) : null;
        if (!node) continue;
        const ring = h("div", { class: `mnb-c-ring ${classes.map((name) => `mnb-c-is-${name}`).join(" ")}` });
        if (classes.includes("break")) ring.append(h("i", { class: "mnb-c-stop" }));
        rings.set(id, ring);
        put(ring, node);
        marks.append(ring);
      }
    },
    reach(id) {
      const one = boxOf(id);
      if (!one) return;
      const x = one.x * k, y = one.y * k;
      const out = x < box.scrollLeft + 40 || x > box.scrollLeft + box.clientWidth - 40 || y < box.scrollTop + 20 || y > box.scrollTop + box.clientHeight - 20;
      if (out) box.scrollTo({ left: x - box.clientWidth / 2, top: y - box.clientHeight / 2 });
    },
    fit() {
      k = Math.max(0.05, Math.min(1, (box.clientWidth - 4) / scene.size[0], (box.clientHeight - 4) / scene.size[1]));
      size();
    },
    zoomBy(factor) {
      const x = (box.scrollLeft + box.clientWidth / 2) / k, y = (box.scrollTop + box.clientHeight / 2) / k;
      k = Math.min(2, Math.max(0.05, k * factor));
      size();
      box.scrollTo({ left: x * k - box.clientWidth / 2, top: y * k - box.clientHeight / 2 });
    },
    /** What is seen of the picture. */
    seen: () => [box.scrollLeft / k, box.scrollTop / k, box.clientWidth / k, box.clientHeight / k],
    go: (x, y) => box.scrollTo({ left: x * k - box.clientWidth / 2, top: y * k - box.clientHeight / 2 }),
  };
}
