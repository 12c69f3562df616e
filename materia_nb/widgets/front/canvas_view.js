/** What of the picture is seen: fitting, zooming, following the current socket, and keeping to a size that changes. */

const CANVAS_LEAST_READABLE = 0.48;
const CANVAS_MOST = 1.15;
const CANVAS_MARGIN = 8;

/**
 * The view of one canvas.
 * @param {() => any} getCy the cytoscape object
 * @param {() => number[]} getSize width and height of the picture
 */
export function canvasViewport(getCy, getSize) {
  let whole = true; // the whole is shown, or as much as can be read; a person has not moved it
  let followed = null;
  let own = false;

  const room = () => [getCy().width(), getCy().height()];
  const scale = () => {
    const [w, h] = room(), [pw, ph] = getSize();
    return Math.min((w - 2 * CANVAS_MARGIN) / pw, (h - 2 * CANVAS_MARGIN) / ph, CANVAS_MOST);
  };
  const set = (zoom, pan) => {
    own = true;
    getCy().viewport({ zoom, pan });
    own = false;
  };
  const bounded = (at, size, within) => {
    if (size <= within) return (within - size) / 2;
    return Math.min(CANVAS_MARGIN, Math.max(within - size - CANVAS_MARGIN, at));
  };
  const centre = (zoom, x, y) => {
    const [w, h] = room(), [pw, ph] = getSize();
    set(zoom, { x: bounded(w / 2 - x * zoom, pw * zoom, w), y: bounded(h / 2 - y * zoom, ph * zoom, h) });
  };
  const view = {
    get isWhole() {
      return whole;
    },
    /** Show the whole, however small it is. */
    fit() {
      if (room()[0] < 20) return;
      whole = true;
      const [pw, ph] = getSize(), zoom = scale();
      if (zoom < getCy().minZoom()) getCy().minZoom(zoom); // or a long row would not be shown whole
      centre(zoom, pw / 2, ph / 2);
    },
    /** Show the whole if it can be read, else what is around a node. */
    start(node, least = CANVAS_LEAST_READABLE) {
      if (room()[0] < 20) return;
      const zoom = scale();
      followed = node && node.nonempty() ? node.id() : null;
      if (zoom >= least || !node || node.empty()) view.fit();
      else {
        centre(0.8, node.position("x"), node.position("y"));
        whole = true;
      }
    },
    zoomBy(factor, at = null) {
      const cy = getCy(), [w, h] = room();
      whole = false;
      own = true;
      cy.zoom({ level: cy.zoom() * factor, renderedPosition: at || { x: w / 2, y: h / 2 } });
      own = false;
    },
    /** Bring an element into view, if it is not there. */
    reach(one) {
      const box = one.renderedBoundingBox({ includeOverlays: false }), [w, h] = room();
      const inside = box.x1 >= 0 && box.y1 >= 0 && box.x2 <= w && box.y2 <= h;
      if (inside || w < 20) return;
      const at = one.isNode() ? one.position() : one.midpoint();
      centre(getCy().zoom(), at.x, at.y);
    },
    follow(one) {
      if (one.empty() || one.id() === followed) return;
      followed = one.id();
      view.reach(one);
    },
    centreOn(x, y) {
      whole = false;
      centre(getCy().zoom(), x, y);
    },
    /** The room for the picture has changed. */
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
