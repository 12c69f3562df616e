/** Draws a scene with cytoscape: nodes are our own pictures, edges are cytoscape's. */
import { canvasStyle, coloured, pictureAddress } from "./canvas_style.js";

export class Drawing {
  /** @type {Map<string, string>} the fixed classes of each element */
  bases = new Map();
  /** @type {Map<string, string>} the picture that each node should get */
  #wanted = new Map();
  #canvas;

  /** @param {import("./canvas.js").Canvas} canvas @param {Cy} cy */
  constructor(canvas, cy) {
    this.#canvas = canvas;
    this.cy = cy;
  }

  /** Replace the scene. @param {Scene} scene */
  build({ nodes, edges, edge }) {
    const { cy, bases } = this;
    cy.batch(() => {
      cy.elements().remove();
      this.#wanted.clear();
      this.bases.clear();
      for (const element of [...nodes, ...edges]) bases.set(element.id, element.classes);
      cy.add(nodes.map(({ id, x, y, w, h, fold, of, classes }) => (
        { group: "nodes", data: { id, w, h, iw: w + 2 * edge, ih: h + 2 * edge, fold, of }, position: { x, y }, grabbable: classes.startsWith("socket"), selectable: false })));
      cy.add(edges.map(({ id, source, target, ws, ds, from, to, dx, dy }) => (
        { group: "edges", data: { id, source, target, ws, ds, from, to, dx, dy }, selectable: false })));
      for (const [id, classes] of bases) this.#canvas.look[id] ? this.#dress(id) : cy.getElementById(id).classes(classes);
    });
  }

  /** Update the look of some elements. @param {string[]} ids */
  dress(ids) {
    this.cy.batch(() => ids.forEach((id) => this.#dress(id)));
  }

  /** @param {string} id */
  #dress(id) {
    const element = this.cy.getElementById(id), now = this.#canvas.look[id];
    if (element.empty() || !now) return;
    element.classes(`${this.bases.get(id) ?? ""} ${now.classes ?? ""}`);
    element.scratch("_mnb", now);
    if (now.svg) this.#paint(element, now.svg);
  }

  /** Change the picture of a node; the old picture stays until the new one has loaded, to avoid flicker. @param {CyElements} node @param {string} svg */
  #paint(node, svg) {
    const id = node.id(), old = node.data("img"), address = pictureAddress(coloured(svg, this.#canvas.colours));
    if (address === old) return;
    this.#wanted.set(id, address);
    const setImage = () => {
      if (this.#wanted.get(id) !== address || node.removed()) return;
      node.data("img", address);
      const cache = this.cy.renderer().imageCache;
      if (old && cache && ![...this.#wanted.values()].includes(old)) delete cache[old];
    };
    const image = old ? this.cy.renderer().getCachedImage?.(address, null, setImage) : null;
    if (!image || image.complete) setImage();
  }

  /** Redraw everything in the current colours. */
  restyle() {
    const { colours, fixed, look } = this.#canvas;
    this.cy.style().fromJson(canvasStyle(colours, fixed.conditions, fixed.font)).update();
    for (const node of this.cy.nodes().toArray()) {
      const svg = look[node.id()]?.svg;
      if (svg) this.#paint(node, svg);
    }
  }

  /** Mark the selection, and the source and target of a connection. @param {Record<string, string|null|undefined>} marks the id of the element for each class */
  mark(marks) {
    this.cy.batch(() => {
      for (const [name, id] of Object.entries(marks)) {
        this.cy.elements(`.${name}`).removeClass(name);
        if (id) this.cy.getElementById(id).addClass(name);
      }
    });
  }
}
