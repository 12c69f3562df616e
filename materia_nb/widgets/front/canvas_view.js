/** The viewport: fitting, zooming, following the current socket, and adapting to size changes. */

const MOST = 1;
/** Height that an opening dock takes, in pixels; see --mnb-low in front.css. */
const DOCK = 154;
/** Pixels to keep free at each side; the tools are at the bottom. */
const EDGES = { left: 8, top: 8, right: 8, bottom: 42 };

/** Return the free area of a canvas, without the space that the collapsed dock takes at the first step. @param {HTMLElement} graph @param {HTMLElement|null} surface @returns {Size} */
export function roomIn(graph, surface) {
  const height = graph.clientHeight - EDGES.top - EDGES.bottom, opens = surface?.matches("[data-empty]:not([data-narrow], [data-folded~=dock])");
  return [graph.clientWidth - EDGES.left - EDGES.right, opens ? Math.max(height / 2, height - DOCK) : height];
}

/** Return the zoom at which a picture fills an area. @param {Size} room @param {Size} size */
export const zoomToFit = ([w, h], [pw, ph]) => Math.min(w / pw, h / ph, MOST);

/** Return the offset of a picture within a length: centred if it fits, or else as close to `at` as possible without a gap. @param {number} at @param {number} size @param {number} within */
export const bounded = (at, size, within) => (size <= within ? (within - size) / 2 : Math.min(0, Math.max(within - size, at)));

/** The view of one canvas. @param {import("./canvas.js").Canvas} canvas */
export function canvasViewport(canvas) {
  let isWhole = true; // false once the user has moved the view
  let followed = "", own = false;
  const getCy = () => /** @type {Cy} */ (canvas.cy), getSize = () => canvas.scene?.size ?? /** @type {Size} */ ([1, 1]);
  const getCorner = () => canvas.scene?.corner ?? /** @type {Size} */ ([0, 0]);
  const readableZoom = () => canvas.scene?.readable ?? 1; // the smallest zoom at which text is readable
  const canvasSize = () => /** @type {Size} */ ([getCy().width(), getCy().height()]);
  const room = () => roomIn(getCy().container(), canvas.surface);
  /** Move the view without counting this as a move by the user. @param {() => void} act */
  const move = (act) => {
    own = true;
    act();
    own = false;
  };
  const centre = (/** @type {number} */ zoom, /** @type {number} */ x, /** @type {number} */ y) => {
    const [w, h] = room(), [pw, ph] = getSize(), [cx, cy] = getCorner();
    const left = bounded(w / 2 - (x - cx) * zoom, pw * zoom, w), top = bounded(h / 2 - (y - cy) * zoom, ph * zoom, h);
    move(() => getCy().viewport({ zoom, pan: { x: EDGES.left + left - cx * zoom, y: EDGES.top + top - cy * zoom } }));
  };
  const view = {
    get isWhole() {
      return isWhole;
    },
    /** Return true if the whole graph is too large to be readable in an area, by default in the current one. */
    isTooLarge(area = room()) {
      return area[0] >= 20 && zoomToFit(area, getSize()) < readableZoom() - 0.005;
    },
    /** Show the whole graph, however small it is. */
    fit() {
      if (room()[0] < 20) return;
      isWhole = true;
      const [pw, ph] = getSize(), [cx, cy] = getCorner(), zoom = zoomToFit(room(), getSize());
      if (zoom < getCy().minZoom()) getCy().minZoom(zoom); // otherwise a long row would not fit
      centre(zoom, cx + pw / 2, cy + ph / 2);
    },
    /** Show the whole graph if it is readable, or else the surroundings of a node. @param {CyElements} [node] */
    start(node) {
      if (room()[0] < 20) return;
      followed = node?.nonempty() ? node.id() : "";
      if (!node || !followed || !view.isTooLarge()) return view.fit();
      centre(readableZoom(), node.position("x"), node.position("y"));
      isWhole = true;
    },
    /** Show the whole graph after it has grown, if it is readable and the user has not moved the view. */
    grown() {
      const box = getCy().elements().renderedBoundingBox({ includeOverlays: false }), [w, h] = canvasSize();
      const inside = box.x1 >= 0 && box.y1 >= 0 && box.x2 <= w && box.y2 <= h - EDGES.bottom;
      if (isWhole && !inside && !view.isTooLarge()) view.fit();
    },
    /** @param {number} factor @param {Point} [at] */
    zoomBy(factor, at) {
      const cy = getCy(), [w, h] = canvasSize();
      isWhole = false;
      move(() => cy.zoom({ level: cy.zoom() * factor, renderedPosition: at ?? { x: w / 2, y: h / 2 } }));
    },
    /** Bring an element into view; with `toRead`, also zoom in until it is readable. @param {CyElements} element @param {boolean} [toRead] */
    reach(element, toRead = false) {
      const box = element.renderedBoundingBox({ includeOverlays: false }), [w, h] = canvasSize(), zoom = getCy().zoom();
      const inside = box.x1 >= 0 && box.y1 >= 0 && box.x2 <= w && box.y2 <= h - EDGES.bottom;
      const small = toRead && zoom < readableZoom();
      if ((inside && !small) || w < 20) return;
      const at = element.isNode() ? element.position() : element.midpoint();
      if (small) isWhole = false;
      centre(small ? readableZoom() : zoom, at.x, at.y);
    },
    /** Bring the current element into view, once. @param {CyElements} [element] */
    follow(element) {
      if (!element?.nonempty() || element.id() === followed) return;
      followed = element.id();
      view.reach(element);
    },
    /** @param {number} x @param {number} y */
    centreOn(x, y) {
      isWhole = false;
      centre(getCy().zoom(), x, y);
    },
    /** Adapt to a new size. @param {CyElements} [node] the node to keep in view @param {boolean} [stays] true if the view must not move, because the user did not change the size */
    resized(node, stays = false) {
      const cy = getCy(), [w, h] = canvasSize();
      if (stays) {
        move(() => cy.resize());
        view.grown();
        if (node?.nonempty()) view.reach(node);
        return;
      }
      const at = { x: (w / 2 - cy.pan().x) / cy.zoom(), y: (h / 2 - cy.pan().y) / cy.zoom() };
      cy.resize();
      if (w < 20 || isWhole) view.start(node);
      else centre(cy.zoom(), at.x, at.y);
    },
    /** Record a pan or zoom by the user. */
    moved() {
      if (!own) isWhole = false;
    },
  };
  return view;
}
