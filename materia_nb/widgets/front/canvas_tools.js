/** The buttons in the corner of the picture, the legend, and saving as PNG or SVG. */
import { h, svg, onKeys, refill, icon } from "./dom.js";
import { openMenu } from "./menu.js";
import { DESIGN_KEYS, KEYS } from "./canvas_keys.js";

/** Download a file. @param {Blob} blob @param {string} name */
function save(blob, name) {
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Return a file name from the letters, digits and dashes of a loadout's name. @param {string|undefined} name @param {string} ending */
export function fileName(name = "", ending) {
  const plain = name.replace(/[^A-Za-z0-9_-]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 60);
  return `${plain || "graph"}.${ending}`;
}

/** Return the legend, with a sample and the meaning of each sign. @param {Colours} c @param {DrawnCondition[]} conditions the conditions of edges */
function legendOf(c, conditions) {
  const line = (/** @type {string} */ use, dash = "", hollow = false) =>
    svg("svg", { width: 46, height: 16, "aria-hidden": "true" },
      svg("path", { d: "M2 8H36", stroke: c[use], "stroke-width": 2, "stroke-dasharray": dash || null, fill: "none" }),
      svg("path", { d: "M35 4L44 8L35 12Z", stroke: c[use], fill: hollow ? c.plate : c[use] }));
  const ring = svg("svg", { width: 46, height: 18, "aria-hidden": "true" },
    svg("rect", { x: 3, y: 2, width: 36, height: 14, rx: 4, fill: "none", stroke: c.now, "stroke-width": 2.2 }));
  const dot = svg("svg", { width: 46, height: 18, "aria-hidden": "true" }, svg("circle", { cx: 21, cy: 9, r: 6, fill: c.break }));
  const sign = (/** @type {string} */ text) => h("b", { class: "mnb-c-sample" }, text);
  const guard = conditions.find((condition) => condition.line === condition.ink)?.line ?? "line"; // an exit has the colour of its condition
  /** @type {[Child, string][]} */
  const rows = [
    [icon("model"), "agent: answered by a model"], [icon("person"), "agent: answered by you"], [icon("function"), "agent: answered by a function"],
    [icon("utility"), "utility: a process"], [icon("generator"), "generates the items of a loop"], [icon("loop"), "loop over items; click to fold it"],
    [ring, "current position of the cast"], [icon("check"), "done"], [sign("×3"), "visited three times"], [dot, "breakpoint"],
    ...conditions.map((condition) => /** @type {[Child, string]} */ ([line(condition.line, condition.dashes?.join(" ")), condition.choice])),
    [line(guard, "7 4", true), "loop exit, taken after the last item"], [line("now"), "taken last"],
    [sign("1 2"), "order in which edges are checked"],
  ];
  return h("div", { class: "mnb-c-legend", role: "list" }, rows.map(([sample, meaning]) =>
    h("div", { role: "listitem" }, h("span", { class: "mnb-c-sign" }, sample), meaning)));
}

/** Return the list of keys. @param {boolean} designs */
const keysOf = (designs) => h("div", { class: "mnb-c-legend", role: "list" }, [...KEYS, ...(designs ? DESIGN_KEYS : [])].map(([keys, does]) =>
  h("div", { role: "listitem" }, h("span", { class: "mnb-c-sign" }, h("b", {}, keys)), does)));

/** @param {import("./canvas.js").Canvas} canvas what the buttons act on */
export function canvasTools(canvas) {
  const { host } = canvas;
  const toolButton = (/** @type {Parameters<typeof icon>[0]} */ name, /** @type {string} */ title, /** @type {(event: MouseEvent) => void} */ act) => h("button", { type: "button", class: "mnb-c-b", title, "aria-label": title.replace(/ \(.*/, ""), onclick: act }, icon(name));
  const legend = h("div", { class: "mnb-c-about", hidden: true, role: "dialog", "aria-label": "legend and shortcuts" });
  const more = toolButton("more", "legend, save as a picture", () => openMenu(more, entries(), { label: "picture" }));
  const box = h("div", { class: "mnb-c-tools", role: "toolbar", "aria-label": "view of the graph" },
    toolButton("fit", "show the whole graph (0)", () => canvas.fit()),
    toolButton("minus", "smaller (-)", () => canvas.view.zoomBy(1 / 1.25)),
    toolButton("plus", "larger (+)", () => canvas.view.zoomBy(1.25)),
    toolButton("find", "find a socket, edge or loop (/)", () => canvas.finder.open()),
    more);
  host.append(box, legend);
  const closeLegend = () => {
    legend.hidden = true;
    refill(legend);
  };
  const openLegend = () => {
    const away = toolButton("cross", "close the legend", closeLegend);
    refill(legend, away, legendOf(canvas.colours, canvas.fixed.conditions), h("b", {}, "Keys"), keysOf(canvas.designs));
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
    { words: "Legend and shortcuts", act: openLegend },
    { words: canvas.scene?.direction === "right" ? "Lay out top to bottom" : "Lay out left to right", act: () => canvas.send("turn") },
    { words: "Save as PNG", act: png },
    { words: "Save as SVG", act: () => canvas.send("svg", { theme: canvas.dark ? "dark" : "light", token: canvas.token }) },
    { words: "Save as a page to play", act: () => canvas.send("play", { token: canvas.token }) },
  ];
  return {
    entries,
    /** Save a file that the kernel has written. @param {{text: string, type: string, ending: string}} file */
    saveText: ({ text, type, ending }) => save(new Blob([text], { type }), fileName(canvas.flags.name, ending)),
  };
}
