/** The graph: draws our cards on a Cytoscape canvas and reports the user's actions. */
import { h } from "./dom.js";
import { canvasIsDark } from "./canvas_style.js";
import { stillPending, choices } from "./canvas_state.js";
import { Drawing } from "./canvas_drawing.js";
import { canvasViewport, roomIn } from "./canvas_view.js";
import { canvasFinder } from "./canvas_find.js";
import { listenToElements, listenToMouse } from "./canvas_mouse.js";
import { canvasMinimap } from "./canvas_minimap.js";
import { canvasTools } from "./canvas_tools.js";
import { canvasDesign } from "./canvas_design.js";
import { canvasKeys, KEYS_IN_WORDS } from "./canvas_keys.js";
import { openMenu, closeMenu } from "./menu.js";

let canvasCount = 0;
/** Time for which a local change is shown while the kernel has not confirmed it, in milliseconds. */
const PATIENCE = 5000;

/**
 * The graph of one view. Its state is in its fields; its parts (mouse, keys, design, tools ...) read these fields and call its
 * methods. `cy` is null until cytoscape has loaded.
 */
export class Canvas {
  /** @type {Fixed} */
  fixed = { themes: { light: {}, dark: {} }, conditions: [], font: "sans-serif" };
  /** @type {Scene|null} */
  scene = null;
  /** @type {Look} */
  look = {};
  /** @type {Flags} */
  flags = {};
  /** @type {Map<string, PartReference>} the part that each element represents */
  picks = new Map();
  /** @type {Cy|null} */
  cy = null;
  /** @type {Drawing|null} */
  drawing = null;
  /** @type {string|null} the source of the connection that the user is drawing */
  connecting = null;
  /** @type {string|null} the current target of that connection */
  aim = null;
  dark = false;
  token = `mnb-c-${++canvasCount}`;
  /** @type {Partial<Flags>} local selections that the kernel has not confirmed */
  #localFlags = {};
  /** @type {Flags} */
  #kernelFlags = {};
  #expiryTimer = 0;
  #sizeTimer = 0;
  /** @type {Size|null} the size last sent to the kernel */
  #sentSize = null;
  /** @type {string|null} the state of the dock and inspector at the last size change */
  #surroundings = null;
  #ends = new AbortController();

  /** @param {HTMLElement} graph the box of the graph @param {HTMLElement} host an empty layer over cytoscape's canvas, inside it @param {SendToCanvas} send */
  constructor(graph, host, send) {
    this.graph = graph;
    this.host = host;
    this.send = send;
    this.signal = this.#ends.signal;
    this.spoken = h("div", { class: "mnb-c-said", role: "status", "aria-live": "polite" });
    this.hint = h("div", { class: "mnb-c-hint", role: "status", hidden: true });
    this.view = canvasViewport(this);
    this.map = canvasMinimap(graph, (x, y) => this.view.centreOn(x, y));
    this.finder = canvasFinder((id) => this.choose(id), (id) => this.pointAt(id));
    host.append(this.map.box, this.finder.box, this.hint, this.spoken);
    this.tools = canvasTools(this);
    this.design = canvasDesign(this);
    const { surface } = this, options = { signal: this.signal };
    graph.addEventListener("keydown", canvasKeys(this), options);
    // JupyterLab looks for this attribute on the focused element only.
    (surface ?? graph).addEventListener("focusin", ({ target }) => target instanceof Element && target.setAttribute("data-lm-suppress-shortcuts", "true"), options);
    surface?.addEventListener("mnb-selected", (event) => this.#selectedElsewhere(/** @type {CustomEvent} */ (event).detail), options);
    listenToMouse(this);
    const sizes = new ResizeObserver(() => this.resized());
    sizes.observe(graph);
    const theme = new MutationObserver(() => this.dark !== canvasIsDark(graph) && this.restyle());
    theme.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "data-jp-theme-name", "class"] });
    this.signal.addEventListener("abort", () => (sizes.disconnect(), theme.disconnect()));
  }

  get surface() {
    return /** @type {HTMLElement|null} */ (this.graph.closest(".mnb-surface"));
  }

  get colours() {
    return this.fixed.themes[this.dark ? "dark" : "light"];
  }

  get designs() {
    return this.flags.mode === "design";
  }

  /** Return the kind of the part that an element represents. @param {string|null|undefined} id */
  kind(id) {
    return this.picks.get(id ?? "")?.[0];
  }

  /** Return the point of an event in the layer over the canvas. @param {MouseEvent} event */
  pointOf({ clientX, clientY }) {
    const box = this.host.getBoundingClientRect();
    return { x: clientX - box.x, y: clientY - box.y };
  }

  /** @param {string|null|undefined} id */
  element(id) {
    return this.cy?.getElementById(id ?? "");
  }

  // -- drawing ------------------------------------------------------------------------

  /** Apply new data. @param {{fixed?: Fixed, scene?: Scene, look?: Look, changed?: Look, flags?: Flags}} data */
  update({ fixed, scene, look, changed, flags }) {
    if (fixed?.themes) {
      this.fixed = fixed;
      this.restyle();
    }
    if (look) this.look = { ...look };
    if (scene?.nodes && scene.number !== this.scene?.number) {
      this.scene = scene;
      if (flags) this.#merge(flags);
      this.#setScene(scene);
    }
    if (changed) {
      Object.assign(this.look, changed);
      if (this.scene) this.drawing?.dress(Object.keys(changed));
    }
    if (flags) this.#takeFlags(flags);
  }

  /** Start drawing with a Cytoscape object. @param {Cy} cy */
  attach(cy) {
    this.cy = cy;
    this.drawing = new Drawing(this, cy);
    cy.userPanningEnabled(true);
    cy.boxSelectionEnabled(false);
    cy.autounselectify(true);
    const container = cy.container();
    container.tabIndex = 0;
    container.setAttribute("role", "application");
    container.addEventListener("mousedown", () => this.focus());
    cy.on("resize", () => {
      // While the page swaps its style sheets the canvas measures 0, and no event follows when it has a size again.
      if (cy.width() < 20) requestAnimationFrame(() => cy.width() < 20 && container.clientWidth >= 20 && this.resized());
    });
    cy.on("viewport", () => {
      this.view.moved();
      this.seen();
      this.design.place();
    });
    listenToElements(this, cy);
    this.design.attach(cy);
    this.restyle();
    if (this.scene) this.#setScene(this.scene);
    this.#setFlags({});
  }

  /** @param {Scene} scene */
  #setScene(scene) {
    this.picks = new Map([...scene.nodes, ...scene.edges].flatMap((element) => (element.pick ? [[element.id, element.pick]] : [])));
    this.finder.set(scene.list, this.token);
    this.graph.dataset.level = String(scene.level);
    if (this.drawing) {
      this.drawing.build(scene);
      this.map.set(scene);
      this.cy?.resize(); // the map takes its width from the canvas
      if (scene.fresh || (this.view.isWhole && !this.designs)) this.view.start(this.anchor());
      else this.view.grown();
      this.design.again();
    }
    this.mark();
    this.seen();
  }

  /** The element to keep in view: the current socket, the selection, or the entry. */
  anchor() {
    return this.element(this.flags.current || this.flags.selected || this.scene?.entry);
  }

  /** Show the visible part in the minimap. */
  seen() {
    const { cy } = this;
    if (!cy) return;
    this.map.frame(-cy.pan().x / cy.zoom(), -cy.pan().y / cy.zoom(), cy.width() / cy.zoom(), cy.height() / cy.zoom());
  }

  restyle() {
    this.dark = canvasIsDark(this.graph);
    this.drawing?.restyle();
  }

  mark() {
    const { selected, current } = this.flags;
    this.map.mark(current, selected);
    this.finder.mark(selected);
    if (!this.scene) return;
    this.drawing?.mark({ selected, source: this.connecting, aimed: this.aim });
    this.design.place();
  }

  // -- the kernel's state and local changes -------------------------------------------

  /** @param {Flags} fromKernel */
  #merge(fromKernel) {
    const drawn = new Set([...(this.scene?.nodes ?? []), ...(this.scene?.edges ?? [])].map((element) => element.id));
    this.#kernelFlags = fromKernel;
    this.#localFlags = stillPending(this.#localFlags, fromKernel, (id) => drawn.has(id));
    this.flags = { ...fromKernel, ...this.#localFlags };
  }

  /** @param {Flags} fromKernel */
  #takeFlags(fromKernel) {
    const before = this.flags;
    this.#merge(fromKernel);
    this.#setFlags(before);
  }

  /** @param {Flags} before */
  #setFlags(before) {
    const { selected, current, mode = "cast", name, marked } = this.flags;
    if (this.cy) {
      this.cy.autoungrabify(!this.designs);
      this.design.set(marked ?? []);
    }
    if (!this.designs && this.connecting !== null) this.cancelConnect();
    this.graph.dataset.mode = mode;
    const label = `graph of ${name || "a loadout"}. ${KEYS_IN_WORDS}`;
    this.cy?.container().setAttribute("aria-label", label);
    this.mark();
    if (current && current !== before.current) this.view.follow(this.element(current));
    if (selected && selected !== before.selected) this.show(selected);
  }

  /** Show a local selection until the kernel confirms it or PATIENCE has passed. @param {Partial<Flags>} changes */
  keep(changes) {
    this.flags = { ...this.flags, ...changes };
    Object.assign(this.#localFlags, changes);
    if (changes.marked) this.design.set(changes.marked);
    clearTimeout(this.#expiryTimer);
    this.#expiryTimer = setTimeout(() => {
      this.#localFlags = {};
      this.#takeFlags(this.#kernelFlags);
    }, PATIENCE);
  }

  /** @param {{kind: string, id: string}|null} selection */
  #selectedElsewhere(selection) {
    const elementId = [...this.picks].find(([, pick]) => pick[0] === selection?.kind && pick[1] === selection?.id)?.[0];
    if (!elementId || this.flags.selected === elementId || "selected" in this.#localFlags) return;
    this.flags = { ...this.flags, selected: elementId };
    this.mark();
  }

  // -- actions -----------------------------------------------------------------------

  focus() {
    this.cy?.container().focus({ preventScroll: true });
  }

  fit() {
    this.view.fit();
    this.#sendSize();
  }

  /** Bring an element into view; with `toRead`, zoom in until its text is readable. @param {string} id @param {boolean} [toRead] */
  show(id, toRead = false) {
    const element = this.element(id);
    if (element?.nonempty()) this.view.reach(element, toRead);
  }

  /** Select an element. @param {string} id */
  pick(id) {
    const pick = this.picks.get(id);
    if (!pick) return;
    this.keep({ selected: id, marked: [] }); // immediately, because a key press may follow before the kernel has answered
    this.mark();
    this.spoken.textContent = this.look[id]?.words ?? "";
    this.graph.dispatchEvent(new CustomEvent("mnb-pick", { bubbles: true, detail: { kind: pick[0], id: pick[1] } }));
    this.send("pick", { element: id });
  }

  unpick() {
    if (!this.flags.selected) return;
    this.keep({ selected: null });
    this.mark();
    this.send("ground");
  }

  /** Select the element chosen in the list. @param {string} id */
  choose(id) {
    this.pick(id);
    this.show(id, true);
    this.focus();
  }

  /** Highlight the element of the active list entry. @param {string|null} id */
  pointAt(id) {
    this.drawing?.mark({ found: id });
    if (id) this.show(id, true);
  }

  /** The selected socket, or null. */
  get socket() {
    return this.kind(this.flags.selected) === "socket" ? this.flags.selected ?? null : null;
  }

  startConnect(from = this.socket) {
    if (!from || !this.designs) return;
    this.connecting = from;
    this.tell("Click the target socket, or use the arrow keys and Enter. Escape cancels.");
    this.mark();
    this.focus();
  }

  /** @param {string} id */
  aimAt(id) {
    this.aim = id;
    this.spoken.textContent = `to ${(this.look[id]?.words || "end").split("\n")[0]}`;
    this.mark();
  }

  connect(to = this.aim) {
    const from = this.connecting;
    this.cancelConnect();
    if (from && to) this.send("connect", { from, to });
  }

  cancelConnect() {
    if (this.connecting === null && this.aim === null) this.design.clear();
    this.connecting = this.aim = null;
    this.tell("");
    closeMenu();
    this.mark();
  }

  toggleBreakpoint() {
    const { selected } = this.flags;
    if (selected && !this.designs && ["socket", "edge", "exit"].includes(this.kind(selected) ?? "")) this.send("break", { element: selected });
  }

  /** Return true if an element is an edge or exit that can be edited; implied edges cannot. @param {string|null|undefined} id */
  #isEditableEdge(id) {
    return this.designs && ["edge", "exit"].includes(this.kind(id) ?? "") && !this.element(id)?.hasClass("implied");
  }

  /** Set the condition of an edge, by its index in the list of conditions. @param {number} index @param {string|null|undefined} [id] */
  setCondition(index, id = this.flags.selected) {
    const condition = this.fixed.conditions[index];
    if (id && condition && this.#isEditableEdge(id)) this.send("when", { of: id, when: condition.ink });
  }

  /** Move an edge up or down in the evaluation order. @param {1|-1} offset @param {string|null|undefined} [id] */
  reorder(offset, id = this.flags.selected) {
    if (id && this.#isEditableEdge(id)) this.send("reorder", { of: id, offset });
  }

  foldSelected() {
    const { selected } = this.flags;
    if (selected && this.kind(selected) === "loop") this.send("fold", { element: selected });
  }

  /** Show an instruction over the picture. @param {string} text */
  tell(text) {
    this.hint.textContent = text;
    this.hint.hidden = !text;
  }

  /** Open the menu of an element, or of the picture. @param {Point} at in the layer @param {string|null|undefined} id */
  openMenu(at, id) {
    const box = this.host.getBoundingClientRect();
    openMenu({ x: box.x + at.x, y: box.y + at.y, within: this.host }, this.#entries(id), { label: "graph" });
  }

  openMenuHere() {
    const element = this.element(this.flags.selected);
    this.openMenu(!element?.nonempty() ? { x: 20, y: 20 } : element.isNode() ? element.renderedPosition() : element.renderedMidpoint(), this.flags.selected);
  }

  /** Ask the surrounding surface to act on a socket. @param {"where"|"compare"|"run_to"} act @param {string} id */
  #asks(act, id) {
    this.graph.dispatchEvent(new CustomEvent("mnb-socket", { bubbles: true, detail: { act, id } }));
  }

  /** @param {string|null|undefined} id @returns {MenuEntry[]} */
  #entries(id) {
    const pick = this.picks.get(id ?? ""), { mode, follows } = this.flags;
    if (!id || !pick) {
      return [{ words: "Show the whole graph", act: () => this.fit() }, ...this.tools.entries()];
    }
    /** @type {Record<import("./canvas_state.js").Act, () => void>} */
    const acts = {
      connect: () => this.connect(id),
      open: () => (this.pick(id), this.send("open", { element: id })),
      lead: () => this.startConnect(id),
      break: () => this.send("break", { element: id }),
      breakAfter: () => this.send("break", { element: id, after: true }),
      breakWhere: () => this.#asks("where", pick[1]),
      compare: () => this.#asks("compare", pick[1]),
      runTo: () => this.#asks("run_to", pick[1]),
      fold: () => this.send("fold", { element: id }),
      delete: () => this.send("delete", { of: id }),
      copy: () => void navigator.clipboard?.writeText(pick[1]),
      centre: () => this.cy?.center(this.cy.getElementById(id)),
    };
    const has = (/** @type {string|undefined} */ classes, /** @type {string} */ name) => (classes ?? "").split(" ").includes(name);
    const situation = { mode, follows, connecting: this.connecting !== null, stops: has(this.look[id]?.classes, "break"), folded: has(this.drawing?.bases.get(id), "folded") };
    const entries = choices(pick[0], situation).map(([label, act]) => ({ words: label, act: acts[act], acts: act === "runTo" }));
    return !this.#isEditableEdge(id) ? entries : [
      ...this.fixed.conditions.map(({ choice }, index) => ({ words: `Taken: ${choice} (${index + 1})`, act: () => this.setCondition(index, id) })),
      { words: "Check it earlier ([)", act: () => this.reorder(-1, id) }, { words: "Check it later (])", act: () => this.reorder(1, id) },
      ...entries,
    ];
  }

  // -- size ---------------------------------------------------------------------------

  resized() {
    // A dock that opens with the first step and an inspector that widens for a failure move the graph only if it no longer fits.
    const { empty, tall } = this.surface?.dataset ?? {}, around = `${empty} ${tall}`, stays = this.#surroundings !== null && around !== this.#surroundings;
    this.#surroundings = around;
    if (this.cy && this.scene) this.view.resized(this.anchor(), stays);
    this.seen();
    const { view } = this, sent = this.#sentSize;
    if (!stays || (this.cy && sent && view.isWhole && !view.isTooLarge(sent) && view.isTooLarge())) this.#sendSize();
  }

  /** Send the available size to the kernel, which chooses how much detail the cards show. */
  #sendSize() {
    const [w, high] = roomIn(this.cy?.container() ?? this.graph, this.surface);
    const same = this.#sentSize && Math.abs(this.#sentSize[0] - w) < 16 && Math.abs(this.#sentSize[1] - high) < 16;
    clearTimeout(this.#sizeTimer); // also if the size is again the one that was sent
    if (w < 44 || high < 10 || !this.scene || same) return;
    this.#sizeTimer = setTimeout(() => {
      this.#sentSize = [w, high];
      this.send("room", { w, h: high });
    }, this.#sentSize ? 250 : 100); // sooner the first time, because a later layout would move cards that are already drawn
  }

  destroy() {
    clearTimeout(this.#sizeTimer);
    clearTimeout(this.#expiryTimer);
    closeMenu();
    this.#ends.abort();
  }
}
