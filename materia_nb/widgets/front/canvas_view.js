/** What of the picture is seen: fitting, zooming, following the current socket, and keeping to a size that changes. */

const MOST = 1;
/** How many pixels higher a dock is that has opened, see --mnb-low in front.css. */
const DOCK = 154;
/** Pixels at each side that nothing is fitted under: at the bottom stand the tools. */
const EDGES = { left: 8, top: 8, right: 8, bottom: 42 };
/** What the map takes of the height above the tools, where the picture runs under it. */
const MAP = 58;

/** The room in which a picture is fitted, of a canvas of this size. @param {Size} size @param {number} [mapWidth] what the map takes at the right @returns {Size} */
export const roomIn = ([w, h], mapWidth = 0) => [w - EDGES.left - EDGES.right - mapWidth, h - EDGES.top - EDGES.bottom];

/** The zoom at which a picture fills a room. @param {Size} room @param {Size} size */
export const zoomToFit = ([w, h], [pw, ph]) => Math.min(w / pw, h / ph, MOST);

/** Where a picture of this size begins within a length, wanted there: in the middle where it fits, else no gap beside it. @param {number} at @param {number} size @param {number} within */
export const bounded = (at, size, within) => (size <= within ? (within - size) / 2 : Math.min(0, Math.max(within - size, at)));

/** The view of one canvas. @param {import("./canvas.js").Canvas} canvas */
export function canvasViewport(canvas) {
  let isWhole = true; // the whole is shown, or as much as can be read; a person has not moved it
  let followed = "", own = false;
  const getCy = () => /** @type {Cy} */ (canvas.cy), getSize = () => canvas.scene?.size ?? /** @type {Size} */ ([1, 1]);
  const getCorner = () => canvas.scene?.corner ?? /** @type {Size} */ ([0, 0]);
  const readableZoom = () => canvas.scene?.readable ?? 1; // the zoom at which it can just be read
  const canvasSize = () => /** @type {Size} */ ([getCy().width(), getCy().height()]);
  const room = () => roomIn(canvasSize(), canvas.map.wide);
  /** Move the view, and know that no person did. @param {() => void} act */
  const move = (act) => {
    own = true;
    act();
    own = false;
  };
  const centre = (/** @type {number} */ zoom, /** @type {number} */ x, /** @type {number} */ y) => {
    const [w, h] = room(), [pw, ph] = getSize(), [cx, cy] = getCorner();
    // Where a dock that is still a row will open, nothing stands that fits above it.
    const above = canvas.surface?.dataset.empty ? Math.min(h, Math.max(ph * zoom, h - DOCK)) : h;
    const clear = canvas.map.wide || ph * zoom <= h ? above : h - MAP; // of what is panned, the end can be brought above the map
    const left = bounded(w / 2 - (x - cx) * zoom, pw * zoom, w), top = bounded(h / 2 - (y - cy) * zoom, ph * zoom, clear);
    move(() => getCy().viewport({ zoom, pan: { x: EDGES.left + left - cx * zoom, y: EDGES.top + top - cy * zoom } }));
  };
  const view = {
    get isWhole() {
      return isWhole;
    },
    /** Whether the whole cannot be read. */
    get isTooLarge() {
      return room()[0] >= 20 && zoomToFit(room(), getSize()) < readableZoom() - 0.005;
    },
    /** Whether a part of the picture is out of sight. */
    get isPanned() {
      return getCy().zoom() > zoomToFit(room(), getSize()) + 0.005;
    },
    /** Show the whole, however small it is. */
    fit() {
      if (room()[0] < 20) return;
      isWhole = true;
      const [pw, ph] = getSize(), [cx, cy] = getCorner(), zoom = zoomToFit(room(), getSize());
      if (zoom < getCy().minZoom()) getCy().minZoom(zoom); // or a long row would not be shown whole
      centre(zoom, cx + pw / 2, cy + ph / 2);
    },
    /** Show the whole if it can be read, else what is around a node. @param {CyElements} [node] */
    start(node) {
      if (room()[0] < 20) return;
      followed = node?.nonempty() ? node.id() : "";
      if (!node || !followed || !view.isTooLarge) return view.fit();
      centre(readableZoom(), node.position("x"), node.position("y"));
      isWhole = true;
    },
    /** The picture has grown: show the whole again, if a person has not moved it and it can be read so. */
    grown() {
      const box = getCy().elements().renderedBoundingBox({ includeOverlays: false }), [w, h] = canvasSize();
      const inside = box.x1 >= 0 && box.y1 >= 0 && box.x2 <= w && box.y2 <= h - EDGES.bottom;
      if (isWhole && !inside && !view.isTooLarge) view.fit();
    },
    /** @param {number} factor @param {Point} [at] */
    zoomBy(factor, at) {
      const cy = getCy(), [w, h] = canvasSize();
      isWhole = false;
      move(() => cy.zoom({ level: cy.zoom() * factor, renderedPosition: at ?? { x: w / 2, y: h / 2 } }));
    },
    /** Bring an element into view, if it is not there, or is smaller than what can be read where that is asked for. @param {CyElements} element @param {boolean} [toRead] */
    reach(element, toRead = false) {
      const box = element.renderedBoundingBox({ includeOverlays: false }), [w, h] = canvasSize(), zoom = getCy().zoom();
      const foot = EDGES.bottom + (canvas.map.box.hidden || canvas.map.wide ? 0 : MAP);
      const inside = box.x1 >= 0 && box.y1 >= 0 && box.x2 <= w && box.y2 <= h - foot;
      const small = toRead && zoom < readableZoom();
      if ((inside && !small) || w < 20) return;
      const at = element.isNode() ? element.position() : element.midpoint();
      if (small) isWhole = false;
      centre(small ? readableZoom() : zoom, at.x, at.y);
    },
    /** Bring what is current into view, once. @param {CyElements} [element] */
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
    /** The room for the picture has changed. @param {CyElements} [node] what is kept in view @param {boolean} [stays] whether nobody asked for that: nothing moves then */
    resized(node, stays = false) {
      const cy = getCy(), [w, h] = canvasSize();
      if (stays) {
        move(() => cy.resize());
        if (node?.nonempty()) view.reach(node);
        return;
      }
      const at = { x: (w / 2 - cy.pan().x) / cy.zoom(), y: (h / 2 - cy.pan().y) / cy.zoom() };
      cy.resize();
      if (w < 20 || isWhole) view.start(node);
      else centre(cy.zoom(), at.x, at.y);
    },
    /** A pan or zoom that a person made. */
    moved() {
      if (!own) isWhole = false;
    },
  };
  return view;
}
