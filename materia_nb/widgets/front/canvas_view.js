/** What of the picture is seen: fitting, zooming, following the current socket, and keeping to a size that changes. */

const LEAST_READABLE = 0.48;
const MOST = 1.15;
const MARGIN = 8;

/** The zoom at which a picture fills a room. @param {Size} room @param {Size} size */
export const zoomToFit = ([w, h], [pw, ph]) => Math.min((w - 2 * MARGIN) / pw, (h - 2 * MARGIN) / ph, MOST);

/** Where a picture of this size begins within a length, wanted there: in the middle where it fits, else no gap beside it. @param {number} at @param {number} size @param {number} within */
export const bounded = (at, size, within) => (size <= within ? (within - size) / 2 : Math.min(MARGIN, Math.max(within - size - MARGIN, at)));

/** The view of one canvas. @param {import("./canvas.js").Canvas} canvas */
export function canvasViewport(canvas) {
  let whole = true; // the whole is shown, or as much as can be read; a person has not moved it
  let followed = "", own = false;
  const getCy = () => /** @type {Cy} */ (canvas.cy), getSize = () => canvas.scene?.size ?? /** @type {Size} */ ([1, 1]);
  const room = () => /** @type {Size} */ ([getCy().width(), getCy().height()]);
  /** Move the view, and know that no person did. @param {() => void} act */
  const move = (act) => {
    own = true;
    act();
    own = false;
  };
  const centre = (/** @type {number} */ zoom, /** @type {number} */ x, /** @type {number} */ y) => {
    const [w, h] = room(), [pw, ph] = getSize();
    move(() => getCy().viewport({ zoom, pan: { x: bounded(w / 2 - x * zoom, pw * zoom, w), y: bounded(h / 2 - y * zoom, ph * zoom, h) } }));
  };
  const view = {
    get isWhole() {
      return whole;
    },
    /** Show the whole, however small it is. */
    fit() {
      if (room()[0] < 20) return;
      whole = true;
      const [pw, ph] = getSize(), zoom = zoomToFit(room(), getSize());
      if (zoom < getCy().minZoom()) getCy().minZoom(zoom); // or a long row would not be shown whole
      centre(zoom, pw / 2, ph / 2);
    },
    /** Show the whole if it can be read, else what is around a node. @param {CyElements} [node] @param {number} [least] */
    start(node, least = LEAST_READABLE) {
      if (room()[0] < 20) return;
      followed = node?.nonempty() ? node.id() : "";
      if (!node || !followed || zoomToFit(room(), getSize()) >= least) return view.fit();
      centre(0.8, node.position("x"), node.position("y"));
      whole = true;
    },
    /** @param {number} factor @param {Point} [at] */
    zoomBy(factor, at) {
      const cy = getCy(), [w, h] = room();
      whole = false;
      move(() => cy.zoom({ level: cy.zoom() * factor, renderedPosition: at ?? { x: w / 2, y: h / 2 } }));
    },
    /** Bring an element into view, if it is not there. @param {CyElements} one */
    reach(one) {
      const box = one.renderedBoundingBox({ includeOverlays: false }), [w, h] = room();
      const inside = box.x1 >= 0 && box.y1 >= 0 && box.x2 <= w && box.y2 <= h;
      if (inside || w < 20) return;
      const at = one.isNode() ? one.position() : one.midpoint();
      centre(getCy().zoom(), at.x, at.y);
    },
    /** Bring what is current into view, once. @param {CyElements} [one] */
    follow(one) {
      if (!one?.nonempty() || one.id() === followed) return;
      followed = one.id();
      view.reach(one);
    },
    /** @param {number} x @param {number} y */
    centreOn(x, y) {
      whole = false;
      centre(getCy().zoom(), x, y);
    },
    /** The room for the picture has changed. @param {CyElements} [node] what is kept in view */
    resized(node) {
      const cy = getCy(), [w, h] = room();
      const at = { x: (w / 2 - cy.pan().x) / cy.zoom(), y: (h / 2 - cy.pan().y) / cy.zoom() };
      cy.resize();
      if (w < 20 || whole) view.start(node);
      else centre(cy.zoom(), at.x, at.y);
    },
    /** A pan or zoom that a person made. */
    moved() {
      if (!own) whole = false;
    },
  };
  return view;
}
