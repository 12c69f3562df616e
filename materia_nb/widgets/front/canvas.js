/** The graph: fills cytoscape's canvas with our own cards, and tells what a person does there. */
import { h } from "./dom.js";
import { canvasIsDark } from "./canvas_style.js";
import { stillPending, choices } from "./canvas_state.js";
import { Drawing } from "./canvas_drawing.js";
import { canvasViewport, roomIn } from "./canvas_view.js";
import { canvasFinder } from "./canvas_find.js";
import { canvasHover, hearElements, hearMouse } from "./canvas_mouse.js";
import { canvasMinimap } from "./canvas_minimap.js";
import { canvasTools } from "./canvas_tools.js";
import { canvasDesign } from "./canvas_design.js";
import { canvasKeys, KEYS_IN_WORDS } from "./canvas_keys.js";
import { canvasStill } from "./canvas_still.js";
import { openMenu, closeMenu } from "./menu.js";

let canvasCount = 0;
/** How long what was done here is shown before the kernel has said the same, in milliseconds. */
const PATIENCE = 5000;

/**
 * The graph of one view. What it knows stands in its fields; its parts (mouse, keys, design, tools ...) read these and call its
 * methods. Until cytoscape is there, and where the graph is too large for it, `cy` is null.
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
  /** @type {Map<string, Pick_>} what the elements stand for */
  picks = new Map();
  /** @type {Cy|null} */
  cy = null;
  /** @type {Drawing|null} */
  drawing = null;
  /** @type {string|null} the socket from which a line is led */
  connecting = null;
  /** @type {string|null} where it would lead */
  aim = null;
  dark = false;
  token = `mnb-c-${++canvasCount}`;
  /** @type {Partial<Flags>} what was picked and marked here and the kernel has not said yet */
  #kept = {};
  /** @type {Flags} */
  #said = {};
  #keeping = 0;
  #telling = 0;
  /** @type {Size|null} the room that the kernel was told of last */
  #told = null;
  /** @type {string|null} what of the surface took room when the room changed last */
  #around = null;
  #ends = new AbortController();

  /**
   * @param {HTMLElement} graph the box of the graph
   * @param {HTMLElement} host an empty layer over cytoscape's canvas, inside it
   * @param {ToldByCanvas} send
   */
  constructor(graph, host, send) {
    this.graph = graph;
    this.host = host;
    this.send = send;
    this.signal = this.#ends.signal;
    this.spoken = h("div", { class: "mnb-c-said", role: "status", "aria-live": "polite" });
    this.hint = h("div", { class: "mnb-c-hint", role: "status", hidden: true });
    this.hover = canvasHover(host);
    this.view = canvasViewport(this);
    this.map = canvasMinimap((x, y) => (this.isStill ? this.still.go(x, y) : this.view.centreOn(x, y)));
    this.finder = canvasFinder((id) => this.choose(id), (id) => this.pointAt(id));
    this.still = canvasStill((id) => this.pick(id));
    host.append(this.still.box, this.map.box, this.finder.box, this.hint, this.spoken);
    this.tools = canvasTools(this);
    this.design = canvasDesign(this);
    const { surface } = this, options = { signal: this.signal };
    graph.addEventListener("keydown", canvasKeys(this), options);
    // JupyterLab's command keys go by the element that has the focus: only there does this keep them away.
    (surface ?? graph).addEventListener("focusin", ({ target }) => target instanceof Element && target.setAttribute("data-lm-suppress-shortcuts", "true"), options);
    surface?.addEventListener("mnb-selected", (event) => this.#selectedElsewhere(/** @type {CustomEvent} */ (event).detail), options);
    this.still.box.addEventListener("scroll", () => this.seen());
    hearMouse(this);
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

  /** Whether it is a still picture, since it is too large for a canvas. */
  get isStill() {
    return Boolean(this.scene?.still);
  }

  get designs() {
    return this.flags.mode === "design";
  }

  /** The kind of what an element stands for. @param {string|null|undefined} id */
  kind(id) {
    return this.picks.get(id ?? "")?.[0];
  }

  /** @param {string|null|undefined} id */
  element(id) {
    return this.cy?.getElementById(id ?? "");
  }

  // -- what is drawn ------------------------------------------------------------------

  /** Take what is new. @param {{fixed?: Fixed, scene?: Scene, look?: Look, changed?: Look, flags?: Flags}} data */
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
      if (this.scene && !this.isStill) this.drawing?.dress(Object.keys(changed));
      this.mark();
    }
    if (flags) this.#takeFlags(flags);
  }

  /** Draw with a cytoscape object. @param {Cy} cy */
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
      // Measured while the page changes its style sheets it has no size, and nobody tells when it has one again.
      if (cy.width() < 20) requestAnimationFrame(() => cy.width() < 20 && container.clientWidth >= 20 && this.resized());
    });
    cy.on("viewport", () => {
      this.view.moved();
      this.hover.hide();
      this.seen();
      this.design.place();
    });
    hearElements(this, cy);
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
    this.still.box.hidden = !this.isStill;
    this.graph.classList.toggle("mnb-c-has-still", this.isStill);
    if (this.isStill) this.still.set(scene, this.colours);
    else if (this.drawing) {
      this.hover.hide();
      this.drawing.build(scene);
      if (scene.fresh || (this.view.isWhole && !this.designs)) this.view.start(this.anchor());
      else this.view.grown();
      this.design.again();
    }
    if (this.isStill || this.cy) this.map.set(scene, this.isStill);
    this.mark();
    this.seen();
  }

  /** What stays in view: where the cast is, what is selected, or where it begins. */
  anchor() {
    return this.element(this.flags.current || this.flags.selected || this.scene?.entry);
  }

  /** Show in the map what of the picture is seen. */
  seen() {
    const { cy } = this;
    if (this.isStill) this.map.frame(...this.still.seen());
    else if (cy) this.map.need(this.view.isTooLarge && this.view.isPanned && cy.width() >= 340), this.map.frame(-cy.pan().x / cy.zoom(), -cy.pan().y / cy.zoom(), cy.width() / cy.zoom(), cy.height() / cy.zoom());
  }

  restyle() {
    this.dark = canvasIsDark(this.graph);
    if (this.isStill) this.still.colours(this.colours);
    this.drawing?.restyle();
  }

  mark() {
    const { selected, current } = this.flags;
    this.map.mark(current, selected);
    this.finder.mark(selected);
    if (this.isStill) return this.still.look(this.look, selected);
    if (!this.scene) return;
    this.drawing?.mark({ selected, source: this.connecting, aimed: this.aim });
    this.design.place();
  }

  // -- what the kernel says, and what was done here -----------------------------------

  /** @param {Flags} fromKernel */
  #merge(fromKernel) {
    const drawn = new Set([...(this.scene?.nodes ?? []), ...(this.scene?.edges ?? [])].map((element) => element.id));
    this.#said = fromKernel;
    this.#kept = stillPending(this.#kept, fromKernel, (id) => drawn.has(id));
    this.flags = { ...fromKernel, ...this.#kept };
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
    if (!this.designs && this.connecting !== null) this.letGo();
    this.graph.dataset.mode = mode;
    const label = `graph of ${name || "a loadout"}. ${KEYS_IN_WORDS}`;
    for (const node of [this.cy?.container(), this.still.box]) node?.setAttribute("aria-label", label);
    this.mark();
    if (current && current !== before.current) this.isStill ? this.still.reach(current) : this.view.follow(this.element(current));
    if (selected && selected !== before.selected) this.show(selected);
  }

  /** Show what a person has picked or marked, until the kernel says the same or has let it wait too long. @param {Partial<Flags>} changes */
  keep(changes) {
    this.flags = { ...this.flags, ...changes };
    Object.assign(this.#kept, changes);
    if (changes.marked) this.design.set(changes.marked);
    clearTimeout(this.#keeping);
    this.#keeping = setTimeout(() => {
      this.#kept = {};
      this.#takeFlags(this.#said);
    }, PATIENCE);
  }

  /** @param {{kind: string, id: string}|null} selection */
  #selectedElsewhere(selection) {
    const elementId = [...this.picks].find(([, pick]) => pick[0] === selection?.kind && pick[1] === selection?.id)?.[0];
    if (!elementId || this.flags.selected === elementId || "selected" in this.#kept) return;
    this.flags = { ...this.flags, selected: elementId };
    this.mark();
  }

  // -- what a person does -------------------------------------------------------------

  focus() {
    (this.isStill ? this.still.box : this.cy?.container())?.focus({ preventScroll: true });
  }

  fit() {
    this.isStill ? this.still.fit() : this.view.fit();
    this.#tellRoom();
  }

  /** @param {number} by @param {Point} [at] */
  zoomBy(by, at) {
    this.isStill ? this.still.zoomBy(by) : this.view.zoomBy(by, at);
  }

  /** Bring an element into view, and if that is asked for, so near that it can be read. @param {string} id @param {boolean} [toRead] */
  show(id, toRead = false) {
    const element = this.element(id);
    if (this.isStill) this.still.reach(id);
    else if (element?.nonempty()) this.view.reach(element, toRead);
  }

  /** Select an element. @param {string} id */
  pick(id) {
    const pick = this.picks.get(id);
    if (!pick) return;
    this.keep({ selected: id, marked: [] }); // at once: a key may follow before the kernel has said so
    this.mark();
    this.spoken.textContent = this.look[id]?.words ?? "";
    this.graph.dispatchEvent(new CustomEvent("mnb-pick", { bubbles: true, detail: { kind: pick[0], id: pick[1] } }));
    this.send("pick", { element: id });
  }

  /** Select nothing. */
  unpick() {
    if (!this.flags.selected) return;
    this.keep({ selected: null });
    this.mark();
    this.send("ground");
  }

  /** Take what was chosen in the list. @param {string} id */
  choose(id) {
    this.pick(id);
    this.show(id, true);
    this.focus();
  }

  /** Show what the list is at. @param {string|null} id */
  pointAt(id) {
    this.drawing?.mark({ found: id });
    if (id) this.show(id, true);
  }

  /** The socket that is selected, if one is. */
  get socket() {
    return this.kind(this.flags.selected) === "socket" ? this.flags.selected ?? null : null;
  }

  startConnect(from = this.socket) {
    if (!from || !this.designs) return;
    this.connecting = from;
    this.tell("Connect to: a click, or arrows and Enter; Escape leaves it");
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
    this.letGo();
    if (from && to) this.send("connect", { from, to });
  }

  letGo() {
    if (this.connecting === null && this.aim === null) this.design.clear();
    this.connecting = this.aim = null;
    this.tell("");
    closeMenu();
    this.mark();
  }

  breakHere() {
    const { selected } = this.flags;
    if (selected && !this.designs && ["socket", "edge", "exit"].includes(this.kind(selected) ?? "")) this.send("break", { what: selected });
  }

  /** Whether an element is a way out that is designed: an edge that is written down, or an exit. @param {string|null|undefined} id */
  #isWay(id) {
    return this.designs && ["edge", "exit"].includes(this.kind(id) ?? "") && !this.element(id)?.hasClass("implied");
  }

  /** Let a way out wait for the condition at a place of their list. @param {number} index @param {string|null|undefined} [id] */
  waitFor(index, id = this.flags.selected) {
    const condition = this.fixed.conditions[index];
    if (id && condition && this.#isWay(id)) this.send("when", { of: id, when: condition.ink });
  }

  /** Look at a way out earlier or later. @param {1|-1} by @param {string|null|undefined} [id] */
  order(by, id = this.flags.selected) {
    if (id && this.#isWay(id)) this.send("order", { of: id, by });
  }

  foldSelected() {
    const { selected } = this.flags;
    if (selected && this.kind(selected) === "loop") this.send("fold", { element: selected });
  }

  /** Say what is asked for, over the picture. @param {string} text */
  tell(text) {
    this.hint.textContent = text;
    this.hint.hidden = !text;
  }

  /** Open the menu of an element, or of the picture. @param {Point} at in the layer @param {string|null|undefined} id */
  openMenu(at, id) {
    const box = this.host.getBoundingClientRect();
    openMenu({ x: box.x + at.x, y: box.y + at.y, within: this.host }, this.#entries(id), { label: "graph" });
  }

  /** Open the menu of what is selected, where it stands. */
  openMenuHere() {
    const element = this.isStill ? undefined : this.element(this.flags.selected);
    this.openMenu(!element?.nonempty() ? { x: 20, y: 20 } : element.isNode() ? element.renderedPosition() : element.renderedMidpoint(), this.flags.selected);
  }

  /** Let the surface around the graph do something with a socket. @param {"where"|"compare"|"run_to"} act @param {string} id */
  #asks(act, id) {
    this.graph.dispatchEvent(new CustomEvent("mnb-socket", { bubbles: true, detail: { act, id } }));
  }

  /** @param {string|null|undefined} id @returns {MenuEntry[]} */
  #entries(id) {
    const pick = this.picks.get(id ?? ""), { mode, follows } = this.flags;
    if (!id || !pick) {
      return [{ words: "Show the whole", act: () => this.fit() }, ...this.tools.entries()];
    }
    /** @type {Record<import("./canvas_state.js").Act, () => void>} */
    const acts = {
      connect: () => this.connect(id),
      open: () => (this.pick(id), this.send("open", { what: id })),
      lead: () => this.startConnect(id),
      break: () => this.send("break", { what: id }),
      breakAfter: () => this.send("break", { what: id, after: true }),
      breakWhere: () => this.#asks("where", pick[1]),
      compare: () => this.#asks("compare", pick[1]),
      runTo: () => this.#asks("run_to", pick[1]),
      fold: () => this.send("fold", { element: id }),
      delete: () => this.send("delete", { what: id }),
      copy: () => void navigator.clipboard?.writeText(pick[1]),
      centre: () => (this.isStill ? this.still.reach(id) : this.cy?.center(this.cy.getElementById(id))),
    };
    const has = (/** @type {string|undefined} */ classes, /** @type {string} */ name) => (classes ?? "").split(" ").includes(name);
    const situation = { mode, follows, connecting: this.connecting !== null, stops: has(this.look[id]?.classes, "break"), folded: has(this.drawing?.bases.get(id), "folded") };
    const entries = choices(pick[0], situation).map(([label, act]) => ({ words: label, act: acts[act], acts: act === "runTo" }));
    return !this.#isWay(id) ? entries : [
      ...this.fixed.conditions.map(({ choice }, index) => ({ words: `Taken: ${choice} (${index + 1})`, act: () => this.waitFor(index, id) })),
      { words: "Look at it earlier ([)", act: () => this.order(-1, id) }, { words: "Look at it later (])", act: () => this.order(1, id) },
      ...entries,
    ];
  }

  // -- its room -----------------------------------------------------------------------

  resized() {
    // A dock that opens with the first step, and an inspector that widens for a failure, take their room and move nothing.
    const { empty, tall } = this.surface?.dataset ?? {}, around = `${empty} ${tall}`, stays = this.#around !== null && around !== this.#around;
    this.#around = around;
    if (this.cy && this.scene && !this.isStill) this.view.resized(this.anchor(), stays);
    this.seen();
    if (!stays) this.#tellRoom();
  }

  /** Tell the kernel how much room there is, so that as much is said as can be read in it. */
  #tellRoom() {
    const { clientWidth, clientHeight } = this.graph, [w, high] = roomIn([clientWidth, clientHeight], this.map.wide);
    const same = this.#told && Math.abs(this.#told[0] - w) < 16 && Math.abs(this.#told[1] - high) < 16;
    if (clientWidth < 60 || clientHeight < 60 || !this.scene || this.isStill || same) return;
    clearTimeout(this.#telling);
    this.#telling = setTimeout(() => {
      this.#told = [w, high];
      this.send("room", { w, h: high });
    }, this.#told ? 250 : 100); // at first soon: what is drawn before that moves
  }

  destroy() {
    clearTimeout(this.#telling);
    clearTimeout(this.#keeping);
    closeMenu();
    this.#ends.abort();
  }
}
