/** Draws a scene with cytoscape: nodes are our own pictures, edges are cytoscape's. */
import { canvasStyle, coloured, pictureAddress } from "./canvas_style.js";

export class Drawing {
  /** @type {Map<string, string>} the fixed classes of each element */
  bases = new Map();
  /** @type {Set<string>} the elements whose look has changed since the last update began */
  #changed = new Set();
  #isLoading = false;
  #sceneNumber = 0;
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
      this.#sceneNumber += 1;
      this.bases.clear();
      for (const element of [...nodes, ...edges]) bases.set(element.id, element.classes);
      cy.add(nodes.map(({ id, x, y, w, h, fold, of, classes }) => (
        { group: "nodes", data: { id, w, h, iw: w + 2 * edge, ih: h + 2 * edge, fold, of }, position: { x, y }, grabbable: classes.startsWith("socket"), selectable: false })));
      cy.add(edges.map(({ id, source, target, ws, ds, from, to, dx, dy }) => (
        { group: "edges", data: { id, source, target, ws, ds, from, to, dx, dy }, selectable: false })));
      for (const [id, classes] of bases) this.#canvas.look[id] ? this.#dress(id, this.#canvas.look[id]) : cy.getElementById(id).classes(classes);
    });
  }

  /** Update the look of some elements. Their pictures appear together when all have loaded, so that all numbers belong to the same moment. @param {string[]} ids */
  dress(ids) {
    for (const id of ids) this.#changed.add(id);
    if (!this.#isLoading) void this.#dressChanged();
  }

  /** Load the pictures of the changed elements and show them, until no element has changed in the meantime. */
  async #dressChanged() {
    this.#isLoading = true;
    while (this.#changed.size) {
      const scene = this.#sceneNumber, looks = [...this.#changed].map((id) => ({ id, look: this.#canvas.look[id] }));
      this.#changed.clear();
      await Promise.all(looks.map(({ id, look }) => this.#load(id, this.#addressOf(look))));
      if (this.cy.destroyed()) return;
      if (scene !== this.#sceneNumber) continue;
      this.cy.batch(() => looks.forEach(({ id, look }) => this.#dress(id, look)));
      this.#canvas.mark(); // the new classes replace those of the selection
    }
    this.#isLoading = false;
  }

  /** @param {Look[string]|undefined} look */
  #addressOf = (look) => (look?.svg ? pictureAddress(coloured(look.svg, this.#canvas.colours)) : "");

  /** Load a picture that replaces another one, which stays until then to avoid flicker. @param {string} id @param {string} address @returns {Promise<unknown>|undefined} */
  #load(id, address) {
    const old = this.cy.getElementById(id).data("img");
    if (!old || !address || address === old) return undefined;
    return new Promise((resolve) => {
      const image = this.cy.renderer().getCachedImage?.(address, null, resolve);
      if (!image || image.complete) return resolve(null);
      image.addEventListener("error", resolve);
    });
  }

  /** @param {string} id @param {Look[string]|undefined} look */
  #dress(id, look) {
    const element = this.cy.getElementById(id), address = this.#addressOf(look), old = element.data("img");
    if (element.empty() || !look) return;
    element.classes(`${this.bases.get(id) ?? ""} ${look.classes ?? ""}`);
    element.scratch("_mnb", look);
    if (!address || address === old) return;
    element.data("img", address);
    const cache = this.cy.renderer().imageCache;
    if (old && cache && !this.cy.nodes().toArray().some((node) => node.data("img") === old)) delete cache[old];
  }

  /** Redraw everything in the current colours. */
  restyle() {
    const { colours, fixed, look } = this.#canvas;
    this.cy.style().fromJson(canvasStyle(colours, fixed.conditions, fixed.font)).update();
    this.dress(Object.keys(look));
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
