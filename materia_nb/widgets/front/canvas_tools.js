/** The buttons in the corner of the picture, what its signs mean, and taking it away as PNG or SVG. */
import { h, svg, onKeys, refill } from "./dom.js";
import { openMenu } from "./menu.js";

/** Give a file to the browser. @param {Blob} blob @param {string} name */
function save(blob, name) {
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** A name for a file: letters, digits and dashes of what a loadout is called. @param {string|undefined} name @param {string} ending */
export function fileName(name = "", ending) {
  const plain = name.replace(/[^A-Za-z0-9_-]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 60);
  return `${plain || "graph"}.${ending}`;
}

/** What the signs mean, as samples. @param {Colours} c @param {DrawnCondition[]} conditions what lines wait for */
function legendOf(c, conditions) {
  const line = (/** @type {string} */ use, dash = "", hollow = false) =>
    svg("svg", { width: 46, height: 16, "aria-hidden": "true" },
      svg("path", { d: "M2 8H36", stroke: c[use], "stroke-width": 2, "stroke-dasharray": dash || null, fill: "none" }),
      svg("path", { d: "M35 4L44 8L35 12Z", stroke: c[use], fill: hollow ? c.plate : c[use] }));
  const card = (/** @type {string} */ kind, cut = false, pile = false) =>
    svg("svg", { width: 46, height: 18, "aria-hidden": "true" },
      pile && svg("rect", { x: 6, y: 4, width: 38, height: 13, rx: 3, fill: c[kind + "-pale"], stroke: c[kind] }),
      cut
        ? svg("polygon", { points: "5,1 40,1 43,4 43,13 40,16 5,16 2,13 2,4", fill: c[kind + "-pale"], stroke: c[kind] })
        : svg("rect", { x: 2, y: 1, width: 38, height: 13, rx: 4, fill: c[kind + "-pale"], stroke: c[kind] }),
      svg("rect", { x: 2, y: cut ? 4 : 2, width: 4, height: cut ? 9 : 11, fill: c[kind] }));
  const ring = svg("svg", { width: 46, height: 18, "aria-hidden": "true" },
    svg("rect", { x: 3, y: 2, width: 36, height: 14, rx: 4, fill: "none", stroke: c.now, "stroke-width": 3 }));
  const dot = svg("svg", { width: 46, height: 18, "aria-hidden": "true" }, svg("circle", { cx: 21, cy: 9, r: 6, fill: c.break }));
  const sign = (/** @type {string} */ words) => h("b", { class: "mnb-c-sample" }, words);
  const guard = conditions.find((one) => one.line === one.ink)?.line ?? "line"; // an exit has the colour of what it waits for
  /** @type {[Child, string][]} */
  const rows = [
    [card("agent"), "agent"], [card("utility", true), "utility: a process"], [card("generator", false, true), "generator: makes the items of a loop"],
    [sign("↻"), "consumes a loop, item by item"], [ring, "where the cast is"], [dot, "breakpoint"], [sign("×3"), "visited or taken three times"],
    ...conditions.map((one) => /** @type {[Child, string]} */ ([line(one.line, one.dashes?.join(" ")), one.choice])),
    [line(guard, "7 4", true), "loop exit, when the items are done"], [line("now"), "taken last"],
    [sign("1 2"), "the order in which edges are looked at"],
  ];
  return h("div", { class: "mnb-c-legend", role: "list" }, rows.map(([sample, words]) =>
    h("div", { role: "listitem" }, h("span", { class: "mnb-c-sign" }, sample), words)));
}

/** @param {import("./canvas.js").Canvas} canvas what the buttons act on */
export function canvasTools(canvas) {
  const { host } = canvas;
  const made = (/** @type {string} */ words, /** @type {string} */ title, /** @type {(event: MouseEvent) => void} */ act) => h("button", { type: "button", class: "mnb-c-b", title, "aria-label": title, onclick: act }, words);
  const legend = h("div", { class: "mnb-c-about", hidden: true, role: "dialog", "aria-label": "what the signs mean" });
  const more = made("⋯", "legend, save as a picture", () => openMenu(more, entries(), { label: "picture" }));
  const box = h("div", { class: "mnb-c-tools", role: "toolbar", "aria-label": "view of the graph" },
    made("fit", "show the whole graph", () => canvas.fit()),
    made("−", "smaller", () => canvas.zoomBy(1 / 1.25)),
    made("+", "larger", () => canvas.zoomBy(1.25)),
    made("→ ↓", "let the flow run to the right, or down", () => canvas.send("turn")),
    made("find", "find a socket, edge or loop", () => canvas.finder.open()),
    more);
  host.append(box, legend);
  const closeLegend = () => {
    legend.hidden = true;
    refill(legend);
  };
  const openLegend = () => {
    const away = made("×", "close the legend", closeLegend);
    refill(legend, away, legendOf(canvas.colours, canvas.fixed.conditions));
    legend.hidden = false;
    away.focus({ preventScroll: true });
  };
  onKeys(legend, { Escape: closeLegend });
  const png = async () => {
    const blob = await canvas.cy?.png({ full: true, scale: 2, bg: canvas.colours.ground, output: "blob-promise", maxWidth: 12000, maxHeight: 12000 });
    if (blob) save(blob, fileName(canvas.flags.name, "png"));
  };
  /** @returns {MenuEntry[]} */
  const entries = () => [
    { words: "What the signs mean", act: openLegend },
    ...(canvas.isStill ? [] : [{ words: "Save as PNG", act: png }]),
    { words: "Save as SVG", act: () => canvas.send("svg", { theme: canvas.dark ? "dark" : "light", token: canvas.token }) },
  ];
  return {
    entries,
    /** The kernel has drawn the picture that was asked for. @param {string} text */
    saveSvg: (text) => save(new Blob([text], { type: "image/svg+xml" }), fileName(canvas.flags.name, "svg")),
  };
}
