/** The graph: fills cytoscape's canvas with our own cards, and tells what a person does there. */
import { h } from "./dom.js";
import { canvasStyle, canvasIsDark, canvasColoured, canvasAddress } from "./canvas_style.js";
import { canvasViewport } from "./canvas_view.js";
import { canvasFinder } from "./canvas_find.js";
import { canvasMenu, canvasHover } from "./canvas_menu.js";
import { canvasMinimap } from "./canvas_minimap.js";
import { canvasTools } from "./canvas_tools.js";
import { canvasDesign } from "./canvas_design.js";
import { canvasKeys, CANVAS_KEYS } from "./canvas_keys.js";
import { canvasStill } from "./canvas_still.js";

let canvasCount = 0;

/**
 * The graph of one view.
 * @param {HTMLElement} host an empty layer over the canvas, inside `.mnb-graph`
 * @param {(kind: string, values?: Record<string, any>) => void} send
 */
export function canvasPart(host, send) {
  const graph = host.closest(".mnb-graph");
  const prefix = `mnb-c-${++canvasCount}`;
  const said = h("div", { class: "mnb-c-said", role: "status", "aria-live": "polite" });
  const hint = h("div", { class: "mnb-c-hint", role: "status", hidden: true });
  let fixed = { themes: { light: {}, dark: {} }, conditions: [], font: "sans-serif" };
  let scene = null, look = {}, flags = {};
  let cy = null, container = null, dark = false, ended = false;
  let aim = null, connecting = null, lastTap = [null, 0];
  let kept = {}, keeping = 0, kernelFlags = {}; // what was picked and marked here and the kernel has not said yet
  const wanted = new Map();
  const bases = new Map();
  const picks = new Map();

  const canvas = {
    send, token: prefix,
    get cy() { return cy; },
    get mode() { return flags.mode; },
    get selected() { return flags.selected || null; },
    get current() { return flags.current || null; },
    get entry() { return scene?.entry || null; },
    get name() { return flags.name; },
    get direction() { return scene?.direction; },
    get conditions() { return fixed.conditions; },
    get colours() { return fixed.themes[dark ? "dark" : "light"]; },
    get dark() { return dark; },
    get isStill() { return Boolean(scene?.still); },
    get connecting() { return connecting; },
    get aim() { return aim; },
    get marked() { return design.marked; },
    /** Show what a person has picked or marked, until the kernel says the same or has let it wait too long. */
    keep(what) {
      flags = { ...flags, ...what };
      Object.assign(kept, what);
      if (what.marked) design.set(what.marked);
      clearTimeout(keeping);
      keeping = setTimeout(() => {
        kept = {};
        takeFlags(kernelFlags);
      }, 5000);
    },
    canPick: (id) => picks.has(id),
    selectedSocket: () => (flags.selected && picks.get(flags.selected)?.[0] === "socket" ? [flags.selected] : []),
    inCanvas: (node) => Boolean(container?.contains(node)),
    inPicture: (at) => ({ x: (at.x - cy.pan().x) / cy.zoom(), y: (at.y - cy.pan().y) / cy.zoom() }),
    nodeAt(x, y, selector) {
      const at = canvas.inPicture({ x, y });
      return cy.nodes(selector).toArray().find((one) => {
        const p = one.position();
        return Math.abs(at.x - p.x) <= one.data("w") / 2 + 4 && Math.abs(at.y - p.y) <= one.data("h") / 2 + 4;
      }) || null;
    },
    focus: () => (canvas.isStill ? still.box : container)?.focus({ preventScroll: true }),
    fit: () => (canvas.isStill ? still.fit() : view.fit()),
    zoomBy: (by, at) => (canvas.isStill ? still.zoomBy(by) : view.zoomBy(by, at)),
    reach: (one) => (canvas.isStill ? still.reach(one.id()) : view.reach(one)),
    find: () => finder.open(),
    pick(id) {
      if (!picks.has(id)) return;
      canvas.keep({ selected: id, marked: [] }); // at once: a key may follow before the kernel has said so
      mark();
      const [kind, key] = picks.get(id);
      said.textContent = look[id]?.words || "";
      graph.dispatchEvent(new CustomEvent("mnb-pick", { bubbles: true, detail: { kind, id: key } }));
      send("pick", { element: id });
    },
    startConnect(from = canvas.selectedSocket()[0]) {
      if (!from || flags.mode !== "design") return;
      connecting = from;
      tell("Connect to: a click, or arrows and Enter; Escape leaves it");
      mark();
      canvas.focus();
    },
    aimAt(id) {
      aim = id;
      said.textContent = `to ${(look[id]?.words || "end").split("\n")[0]}`;
      mark();
    },
    connect(to = aim) {
      const from = connecting;
      canvas.letGo();
      if (from && to) send("connect", { from, to });
    },
    letGo() {
      if (connecting === null && aim === null) design.clear();
      connecting = aim = null;
      tell("");
      menu.close();
      mark();
    },
    breakHere() {
      if (["socket", "edge", "exit"].includes(picks.get(flags.selected)?.[0]) && flags.mode !== "design") send("break", { what: flags.selected });
    },
    foldSelected() {
      if (picks.get(flags.selected)?.[0] === "loop") send("fold", { element: flags.selected });
    },
    openMenu() {
      const one = flags.selected && !canvas.isStill ? cy.getElementById(flags.selected) : null;
      const at = one?.nonempty() ? (one.isNode() ? one.renderedPosition() : one.renderedMidpoint()) : { x: 20, y: 20 };
      menu.open(at.x, at.y, "graph", entries(flags.selected));
    },
  };

  const menu = (canvas.menu = canvasMenu(host));
  const hover = (canvas.hover = canvasHover(host));
  const view = canvasViewport(() => cy, () => scene.size);
  const map = canvasMinimap(() => cy, (x, y) => (canvas.isStill ? still.go(x, y) : view.centreOn(x, y)));
  const finder = canvasFinder(
    (id) => {
      canvas.pick(id);
      show(id);
      canvas.focus();
    },
    (id) => {
      cy?.elements(".found").removeClass("found");
      if (!id) return;
      cy?.getElementById(id).addClass("found");
      show(id);
    },
  );
  const still = canvasStill((id) => canvas.pick(id));
  host.append(still.box, map.box, finder.box, hint, said);
  const tools = canvasTools(host, canvas);
  const design = canvasDesign(graph, host, canvas);
  const keys = canvasKeys(canvas);

  const tell = (words) => {
    hint.textContent = words;
    hint.hidden = !words;
  };
  const show = (id) => {
    if (canvas.isStill) return still.reach(id);
    const one = cy?.getElementById(id);
    if (one?.nonempty()) view.reach(one);
  };

  // -- what is drawn ------------------------------------------------------------------

  const classesOf = (id) => `${bases.get(id) || ""} ${look[id]?.classes || ""}`;
  /** Give a node another picture; the old one stays until the new one is there, so that nothing blinks. */
  const paint = (node, svg) => {
    const address = canvasAddress(canvasColoured(svg, canvas.colours));
    const id = node.id(), old = node.data("img");
    if (address === old) return;
    wanted.set(id, address);
    const put = () => {
      if (wanted.get(id) !== address || node.removed()) return;
      node.data("img", address);
      const cache = cy.renderer().imageCache;
      if (old && cache && ![...wanted.values()].includes(old)) delete cache[old];
    };
    const image = old ? cy.renderer().getCachedImage?.(address, null, put) : null;
    if (!image || image.complete) put();
  };
  const dress = (id) => {
    const one = cy.getElementById(id), now = look[id];
    if (one.empty() || !now) return;
    one.classes(classesOf(id));
    one.scratch("_mnb", now);
    if (now.svg) paint(one, now.svg);
    else one.data("label", now.label || "");
  };
  /** Mark what is selected and aimed at. */
  const mark = () => {
    map.mark(flags.current, flags.selected);
    finder.mark(flags.selected);
    if (canvas.isStill) return still.look(look, flags.selected);
    if (!cy || !scene) return;
    cy.batch(() => {
      cy.elements(".selected, .aimed, .source").removeClass("selected aimed source");
      for (const [id, name] of [[flags.selected, "selected"], [connecting, "source"], [aim, "aimed"]]) {
        if (id) cy.getElementById(id).addClass(name);
      }
    });
    design.place();
  };
  const build = () => {
    const edge = 2 * scene.edge;
    cy.batch(() => {
      cy.elements().remove();
      wanted.clear();
      bases.clear();
      for (const one of scene.nodes) bases.set(one.id, one.classes);
      for (const one of scene.edges) bases.set(one.id, one.classes);
      cy.add(
        scene.nodes.map((one) => ({
          group: "nodes", data: { id: one.id, w: one.w, h: one.h, iw: one.w + edge, ih: one.h + edge, fold: one.fold, of: one.of },
          position: { x: one.x, y: one.y }, grabbable: one.classes.startsWith("socket"), selectable: false,
        })),
      );
      cy.add(
        scene.edges.map(({ id, source, target, ws, ds, from, to, dx, dy }) => ({
          group: "edges", data: { id, source, target, ws, ds, from, to, dx, dy, label: "" }, selectable: false,
        })),
      );
      for (const id of bases.keys()) {
        if (look[id]) dress(id);
        else cy.getElementById(id).classes(bases.get(id));
      }
    });
  };
  const setScene = () => {
    if (!scene?.nodes) return;
    picks.clear();
    for (const one of [...scene.nodes, ...scene.edges]) if (one.pick) picks.set(one.id, one.pick);
    finder.set(scene.list, prefix);
    still.box.hidden = !canvas.isStill;
    graph.classList.toggle("mnb-c-has-still", canvas.isStill);
    if (canvas.isStill) {
      still.set(scene, canvas.colours);
      map.set(scene, true);
    } else if (cy) {
      hover.hide();
      build();
      map.set(scene);
      if (scene.fresh || view.isWhole) view.start(anchor(), flags.mode === "design" ? 0.35 : undefined);
      design.again();
    }
    mark();
    seen();
  };
  const anchor = () => cy.getElementById(flags.current || flags.selected || scene.entry || "");
  const seen = () => {
    if (canvas.isStill) map.frame(...still.seen());
    else if (cy) map.frame(-cy.pan().x / cy.zoom(), -cy.pan().y / cy.zoom(), cy.width() / cy.zoom(), cy.height() / cy.zoom());
  };
  const restyle = () => {
    dark = canvasIsDark(graph);
    graph.dataset.dark = dark ? "yes" : "no";
    if (canvas.isStill) still.colours(canvas.colours);
    if (!cy) return;
    cy.style().fromJson(canvasStyle(canvas.colours, fixed.conditions, fixed.font)).update();
    for (const one of cy.nodes().toArray()) if (look[one.id()]?.svg) paint(one, look[one.id()].svg);
  };
  const setFlags = (before) => {
    if (cy) {
      cy.autoungrabify(flags.mode !== "design");
      design.set(flags.marked || []);
    }
    if (flags.mode !== "design" && connecting !== null) canvas.letGo();
    graph.dataset.mode = flags.mode || "cast";
    const label = `graph of ${flags.name || "a loadout"}. ${CANVAS_KEYS}`;
    for (const node of [container, still.box]) node?.setAttribute("aria-label", label);
    mark();
    if (flags.current && flags.current !== before.current) follow();
    if (flags.selected && flags.selected !== before.selected) show(flags.selected);
  };
  /** What the kernel says, but an answer to an earlier act does not undo a later one. */
  const withKept = (said) => {
    kernelFlags = said;
    const ids = (value) => [value ?? []].flat().sort();
    const drawn = (id) => [...scene.nodes, ...scene.edges].some((one) => one.id === id);
    for (const name of Object.keys(kept)) {
      if (String(ids(kept[name])) === String(ids(said[name])) || !ids(kept[name]).every(drawn)) delete kept[name];
    }
    return { ...said, ...kept };
  };
  const takeFlags = (said) => {
    const before = flags;
    flags = withKept(said);
    setFlags(before);
  };
  const follow = () => {
    if (canvas.isStill) still.reach(flags.current);
    else if (cy && scene) view.follow(cy.getElementById(flags.current));
  };

  // -- what a person does -------------------------------------------------------------

  const entries = (id) => {
    const pick = picks.get(id), found = [];
    const add = (words, act) => found.push({ words, act });
    if (pick) {
      const [kind, key] = pick;
      if (connecting !== null && kind === "socket") add("Connect to this", () => canvas.connect(id));
      add("Open in inspector", () => (canvas.pick(id), send("open", { what: id })));
      if (kind === "socket" && flags.mode === "design") add("Connect from here…", () => canvas.startConnect(id));
      if (kind !== "loop" && flags.mode !== "design" && flags.follows) {
        const has = (look[id]?.classes || "").split(" ").includes("break"), socket = kind === "socket";
        add(has ? "Take the breakpoint away" : socket ? "Breakpoint here" : "Stop when taken", () => send("break", { what: id }));
        if (socket && !has) add("Stop after it", () => send("break", { what: id, after: true }));
        if (socket) add("Run to here", () => send("run_to", { id }));
      }
      if (kind === "loop") add(bases.get(id)?.includes("folded") ? "Unfold the loop" : "Fold the loop", () => send("fold", { element: id }));
      if (flags.mode === "design") add("Delete", () => send("delete", { what: id }));
      add("Copy id", () => navigator.clipboard?.writeText(key));
      if (kind === "socket") add("Centre it", () => (canvas.isStill ? still.reach(id) : cy.center(cy.getElementById(id))));
    } else {
      add("Show the whole", canvas.fit);
      add(scene?.direction === "right" ? "Let it run down" : "Let it run to the right", () => send("turn"));
      found.push(...tools.entries());
    }
    return found;
  };
  /** What an element stands for: a chip for its line. */
  const ofElement = (one) => one.data("of") || one.id();
  const tapped = (event) => {
    const id = ofElement(event.target), now = performance.now();
    canvas.focus();
    hover.hide();
    if (connecting !== null && (event.target.hasClass("socket") || event.target.hasClass("end"))) return canvas.connect(id);
    const fold = event.target.data("fold");
    if (fold && Math.abs(event.position.x - fold[0]) < 14 && Math.abs(event.position.y - fold[1]) < 12) return send("fold", { element: id });
    if (!picks.has(id)) return;
    const twice = lastTap[0] === id && now - lastTap[1] < 400;
    lastTap = [id, now];
    if (!twice) canvas.pick(id);
    else if (picks.get(id)[0] === "loop") send("fold", { element: id });
    else send("open", { what: id });
  };
  const wheel = (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    const box = host.getBoundingClientRect();
    const step = Math.min(60, Math.abs(event.deltaY) * (event.deltaMode === 1 ? 30 : 1));
    canvas.zoomBy(Math.exp((-Math.sign(event.deltaY) * step) / 250), { x: event.clientX - box.x, y: event.clientY - box.y });
  };
  const rightClick = (event) => {
    if (host.contains(event.target) && !still.box.contains(event.target)) return;
    event.preventDefault();
    event.stopPropagation();
    if (!canvas.isStill) return; // cytoscape tells which element it is
    const box = host.getBoundingClientRect();
    menu.open(event.clientX - box.x, event.clientY - box.y, "graph", entries(still.hit(event)?.id));
  };
  const attach = (found, where) => {
    [cy, container] = [found, where];
    cy.userPanningEnabled(true);
    cy.boxSelectionEnabled(false);
    cy.autounselectify(true);
    container.tabIndex = 0;
    container.setAttribute("role", "application");
    container.addEventListener("mousedown", canvas.focus);
    cy.on("tap", "node, edge", tapped);
    cy.on("tap", (event) => {
      if (event.target !== cy) return;
      canvas.focus();
      if (connecting !== null) return canvas.letGo();
      design.clear();
      if (!flags.selected) return;
      canvas.keep({ selected: null });
      mark();
      send("ground");
    });
    cy.on("cxttap", (event) => {
      const at = event.renderedPosition || event.cyRenderedPosition;
      hover.hide();
      menu.open(at.x, at.y, "graph", entries(event.target === cy ? null : ofElement(event.target)));
    });
    cy.on("mouseover mousemove", "node, edge", (event) => {
      const at = event.renderedPosition;
      const id = ofElement(event.target);
      container.style.cursor = picks.has(id) ? "pointer" : "";
      if (!event.originalEvent?.buttons) hover.show(at.x, at.y, id, look[id]?.words);
    });
    cy.on("mouseout", "node, edge", () => {
      container.style.cursor = "";
      hover.hide();
    });
    cy.on("resize", () => {
      // Measured while the page changes its style sheets it has no size, and nobody tells when it has one again.
      if (cy.width() < 20) requestAnimationFrame(() => cy.width() < 20 && container.clientWidth >= 20 && resized());
    });
    cy.on("viewport", () => {
      view.moved();
      hover.hide();
      seen();
      design.place();
    });
    design.attach(cy);
    restyle();
    setScene();
    setFlags({});
  };
  const seek = () => {
    if (ended) return;
    const where = graph.querySelector(".mnb-canvas");
    const found = where?._cyreg?.cy;
    if (found) attach(found, where);
    else setTimeout(seek, 30);
  };

  // JupyterLab's command keys go by the element that has the focus: only there does this keep them away.
  const ownKeys = (event) => event.target.setAttribute?.("data-lm-suppress-shortcuts", "true");
  const whole = graph.closest(".mnb-surface") || graph;
  whole.addEventListener("focusin", ownKeys);
  // cytoscape keeps where it is on the page, and is not told when something above it grows or the page has just scrolled.
  const measured = () => cy?.renderer().invalidateContainerClientCoordsCache();
  for (const name of ["pointerover", "pointerdown"]) graph.addEventListener(name, measured, true);
  graph.addEventListener("wheel", wheel, { capture: true, passive: false });
  graph.addEventListener("contextmenu", rightClick);
  graph.addEventListener("keydown", keys);
  still.box.addEventListener("scroll", seen);
  const surface = graph.closest(".mnb-surface");
  const elsewhere = (event) => {
    const { kind, id } = event.detail || {};
    const found = [...picks].find(([, pick]) => pick[0] === kind && pick[1] === id);
    if (!found || flags.selected === found[0] || "selected" in kept) return;
    flags = { ...flags, selected: found[0] };
    mark();
  };
  surface?.addEventListener("mnb-selected", elsewhere);
  /** Tell the kernel how much room there is, so that the flow runs where it is seen larger. */
  let told = null, telling = 0;
  const tellRoom = () => {
    const w = graph.clientWidth, h = graph.clientHeight;
    const shape = Math.log(w / h);
    if (w < 60 || h < 60 || !scene || canvas.isStill || (told !== null && Math.abs(shape - told) < 0.15)) return;
    clearTimeout(telling);
    telling = setTimeout(() => {
      told = shape;
      send("room", { w, h });
    }, 250);
  };
  const resized = () => {
    if (cy && scene && !canvas.isStill) view.resized(anchor());
    seen();
    tellRoom();
  };
  const sizes = new ResizeObserver(resized);
  sizes.observe(graph);
  const theme = new MutationObserver(() => dark !== canvasIsDark(graph) && restyle());
  theme.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "data-jp-theme-name", "class"] });
  seek();

  return {
    /** @param {{fixed?: any, scene?: any, look?: any, changed?: any, flags?: any, svg?: string}} data what is new */
    update(data) {
      if (data.fixed?.themes) {
        fixed = data.fixed;
        restyle();
      }
      if (data.look) look = { ...data.look };
      if (data.scene && data.scene.number !== scene?.number) {
        scene = data.scene;
        if (data.flags) flags = withKept(data.flags);
        setScene();
      }
      if (data.changed) {
        Object.assign(look, data.changed);
        if (cy && scene && !canvas.isStill) cy.batch(() => Object.keys(data.changed).forEach(dress));
        mark();
      }
      if (data.flags) takeFlags(data.flags);
      if (data.svg) tools.svg(data.svg);
    },
    destroy() {
      ended = true;
      clearTimeout(telling);
      clearTimeout(keeping);
      sizes.disconnect();
      theme.disconnect();
      menu.close();
      design.destroy();
      for (const name of ["pointerover", "pointerdown"]) graph.removeEventListener(name, measured, true);
      graph.removeEventListener("wheel", wheel, { capture: true });
      graph.removeEventListener("contextmenu", rightClick);
      graph.removeEventListener("keydown", keys);
      whole.removeEventListener("focusin", ownKeys);
      surface?.removeEventListener("mnb-selected", elsewhere);
    },
  };
}
