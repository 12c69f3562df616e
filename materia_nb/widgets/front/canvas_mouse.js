/** The mouse on the canvas: clicks, hover texts and zoom. */
import { setAttr, targetOf } from "./dom.js";

/** Listen to the mouse in the graph's box, before cytoscape does. @param {import("./canvas.js").Canvas} canvas */
export function listenToMouse(canvas) {
  const { graph, host, signal } = canvas;
  // Cytoscape caches its position on the page and does not notice when content above it grows or the page scrolls.
  const measured = () => canvas.cy?.renderer().invalidateContainerClientCoordsCache();
  for (const name of ["pointerover", "pointerdown"]) graph.addEventListener(name, measured, { capture: true, signal });
  graph.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    const step = Math.min(60, Math.abs(event.deltaY) * (event.deltaMode === 1 ? 30 : 1));
    canvas.view.zoomBy(Math.exp((-Math.sign(event.deltaY) * step) / 250), canvas.pointOf(event));
  }, { capture: true, passive: false, signal });
  graph.addEventListener("contextmenu", (event) => {
    const target = targetOf(event);
    if (host.contains(target)) return;
    event.preventDefault();
    event.stopPropagation();
  }, { signal });
}

/** Listen to Cytoscape's mouse events. @param {import("./canvas.js").Canvas} canvas @param {Cy} cy */
export function listenToElements(canvas, cy) {
  /** Return the edge of a chip, or else the element itself. */
  const idOf = (/** @type {CyElements} */ element) => /** @type {string} */ (element.data("of") || element.id());
  const isGround = (/** @type {CyEvent} */ event) => /** @type {unknown} */ (event.target) === cy;
  const container = cy.container();
  let last = "", lastAt = 0;
  cy.on("tap", "node, edge", ({ target, position }) => {
    const id = idOf(target), now = performance.now(), fold = target.data("fold");
    canvas.focus();
    if (canvas.connecting !== null && (target.hasClass("socket") || target.hasClass("end"))) return canvas.connect(id);
    if (fold && Math.abs(position.x - fold[0]) < 14 && Math.abs(position.y - fold[1]) < 12) return canvas.send("fold", { element: id });
    if (!canvas.kind(id)) return;
    const twice = last === id && now - lastAt < 400;
    [last, lastAt] = [id, now];
    if (!twice) canvas.pick(id);
    else if (canvas.kind(id) === "loop") canvas.send("fold", { element: id });
    else canvas.send("open", { element: id });
  });
  cy.on("tap", (event) => {
    if (!isGround(event)) return;
    canvas.focus();
    if (canvas.connecting !== null) return canvas.cancelConnect();
    canvas.design.clear();
    canvas.unpick();
  });
  cy.on("cxttap taphold", (event) => {
    if (event.type === "taphold" && !/touch/.test(event.originalEvent?.type ?? "")) return; // a long press opens the menu only on touch screens, because a mouse has a right button
    canvas.openMenu(event.renderedPosition, isGround(event) ? null : idOf(event.target));
  });
  cy.on("mouseover mousemove", "node, edge", ({ target }) => {
    const id = idOf(target);
    container.style.cursor = canvas.kind(id) ? "pointer" : "";
    setAttr(container, "title", canvas.look[id]?.words);
  });
  cy.on("mouseout", "node, edge", () => {
    container.style.cursor = "";
    container.title = "";
  });
}
