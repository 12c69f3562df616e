/** The buttons in the corner of the picture, what its signs mean, and taking it away as PNG or SVG. */
import { h, svg, clear } from "./dom.js";

/** Give a file to the browser. @param {Blob} blob @param {string} name */
function canvasSave(blob, name) {
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** A name for a file: letters, digits and dashes of what a loadout is called. */
function canvasFileName(name, ending) {
  const plain = (name || "").replace(/[^A-Za-z0-9_-]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 60);
  return `${plain || "graph"}.${ending}`;
}

/**
 * What the signs mean, as samples.
 * @param {Record<string, string>} c colours
 * @param {{choice: string, line: string, ink: string, dashes: ?number[]}[]} conditions what lines wait for
 */
function canvasLegend(c, conditions) {
  const line = (use, dash, hollow) =>
    svg("svg", { width: 46, height: 16, "aria-hidden": "true" },
      svg("path", { d: "M2 8H36", stroke: c[use], "stroke-width": 2, "stroke-dasharray": dash, fill: "none" }),
      svg("path", { d: "M35 4L44 8L35 12Z", stroke: c[use], fill: hollow ? c.plate : c[use] }));
  const card = (kind, cut, pile) =>
    svg("svg", { width: 46, height: 18, "aria-hidden": "true" },
      pile && svg("rect", { x: 6, y: 4, width: 38, height: 13, rx: 3, fill: c[kind + "-pale"], stroke: c[kind] }),
      cut
        ? svg("polygon", { points: "5,1 40,1 43,4 43,13 40,16 5,16 2,13 2,4", fill: c[kind + "-pale"], stroke: c[kind] })
        : svg("rect", { x: 2, y: 1, width: 38, height: 13, rx: 4, fill: c[kind + "-pale"], stroke: c[kind] }),
      svg("rect", { x: 2, y: cut ? 4 : 2, width: 4, height: cut ? 9 : 11, fill: c[kind] }));
  const ring = svg("svg", { width: 46, height: 18, "aria-hidden": "true" },
    svg("rect", { x: 3, y: 2, width: 36, height: 14, rx: 4, fill: "none", stroke: c.now, "stroke-width": 3 }));
  const dot = svg("svg", { width: 46, height: 18, "aria-hidden": "true" }, svg("circle", { cx: 21, cy: 9, r: 6, fill: c.break }));
  const sign = (words) => h("b", { class: "mnb-c-sample" }, words);
  const guard = conditions.find((one) => one.line === one.ink); // an exit has the colour of what it waits for
  const rows = [
    [card("agent"), "agent"], [card("utility", true), "utility: a process"], [card("generator", false, true), "generator: makes the items of a loop"],
    [sign("↻"), "consumes a loop, item by item"], [ring, "where the cast is"], [dot, "breakpoint"], [sign("×3"), "visited or taken three times"],
    ...conditions.map((one) => [line(one.line, one.dashes?.join(" ")), one.choice]),
    [line(guard.line, "7 4", true), "loop exit, when the items are done"], [line("now"), "taken last"],
    [sign("1 2"), "the order in which edges are looked at"],
  ];
  return h("div", { class: "mnb-c-legend", role: "list" }, rows.map(([sample, words]) =>
    h("div", { role: "listitem" }, h("span", { class: "mnb-c-sign" }, sample), words)));
}

/**
 * @param {HTMLElement} host where they go
 * @param {any} canvas what the buttons act on, see canvas.js
 */
export function canvasTools(host, canvas) {
  const made = (words, title, act) =>
    h("button", { type: "button", class: "mnb-c-b", title, "aria-label": title, onclick: act }, words);
  const turn = made("→ ↓", "let the flow run to the right, or down", () => canvas.send("turn"));
  const box = h("div", { class: "mnb-c-tools", role: "toolbar", "aria-label": "view of the graph" },
    made("fit", "show the whole graph", () => canvas.fit()),
    made("−", "smaller", () => canvas.zoomBy(1 / 1.25)),
    made("+", "larger", () => canvas.zoomBy(1.25)),
    turn,
    made("find", "find a socket, edge or loop", () => canvas.find()),
    made("⋯", "legend, save as a picture", (event) => {
      const at = event.currentTarget.getBoundingClientRect(), from = host.getBoundingClientRect();
      canvas.menu.open(at.x - from.x, at.y - from.y - 100, "picture", entries());
    }),
  );
  const legend = h("div", { class: "mnb-c-about", hidden: true, role: "dialog", "aria-label": "what the signs mean" });
  host.append(box, legend);

  const closeLegend = () => {
    legend.hidden = true;
    clear(legend);
  };
  const openLegend = () => {
    const away = made("×", "close the legend", closeLegend);
    clear(legend).append(away, canvasLegend(canvas.colours, canvas.conditions));
    legend.hidden = false;
    away.focus({ preventScroll: true });
  };
  legend.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    closeLegend();
  });
  const entries = () => [
    { words: "What the signs mean", act: openLegend },
    ...(canvas.isStill ? [] : [{ words: "Save as PNG", act: png }]),
    { words: "Save as SVG", act: () => canvas.send("svg", { theme: canvas.dark ? "dark" : "light", token: canvas.token }) },
  ];
  const png = async () => {
    const blob = await canvas.cy.png({ full: true, scale: 2, bg: canvas.colours.ground, output: "blob-promise", maxWidth: 12000, maxHeight: 12000 });
    canvasSave(blob, canvasFileName(canvas.name, "png"));
  };
  return {
    entries,
    /** The kernel has drawn the picture that was asked for. */
    svg(text) {
      canvasSave(new Blob([text], { type: "image/svg+xml" }), canvasFileName(canvas.name, "svg"));
    },
  };
}
