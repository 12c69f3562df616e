/** How the canvas looks: the rules of cytoscape for one set of colours. Nodes are our own pictures. */

/** @param {string} selector @param {Record<string, any>} style */
const canvasRule = (selector, style) => ({ selector, style });

/**
 * The rules for a theme.
 * @param {Record<string, string>} c colours by their use
 * @param {{class: string, line: string, ink: string, dashes: ?number[]}[]} conditions what lines wait for, and how they look
 * @param {string} font a family that cytoscape takes
 */
export function canvasStyle(c, conditions, font) {
  const line = (selector, use, ink, more = {}) =>
    canvasRule(selector, {
      "line-color": c[use], "target-arrow-color": c[use], "text-border-color": c[use], color: c[ink || use], ...more,
    });
  return [
    canvasRule("node", {
      label: "", width: "data(w)", height: "data(h)", shape: "round-rectangle", "background-opacity": 0, "border-width": 0,
      "background-fit": "none", "background-clip": "none", "background-image-containment": "over",
      "background-position-x": "50%", "background-position-y": "50%", "bounds-expansion": 14,
      "z-index-compare": "manual", "z-index": 10, "overlay-opacity": 0,
    }),
    canvasRule("node[img]", {
      "background-image": "data(img)", "background-width": "data(iw)", "background-height": "data(ih)",
    }),
    canvasRule("node.loop", { "z-index": 1 }),
    canvasRule("node.folded", { "z-index": 10 }),
    canvasRule("node.chip", { "z-index": 20 }),
    canvasRule("node.anchor", { events: "no", opacity: 0, "bounds-expansion": 0 }),
    canvasRule("node.sign", { "z-index": 9 }),
    canvasRule("edge", {
      "curve-style": "segments", "edge-distances": "node-position", "segment-weights": "data(ws)",
      "segment-distances": "data(ds)", "source-endpoint": "data(from)", "target-endpoint": "data(to)",
      width: 1.7, "target-arrow-shape": "triangle", "arrow-scale": 0.95, "font-family": font,
      "font-size": 10.5, "text-margin-x": "data(dx)", "text-margin-y": "data(dy)", "text-background-color": c.plate,
      "text-background-opacity": 1, "text-background-padding": "4px", "text-background-shape": "roundrectangle",
      "text-border-width": 1, "text-border-opacity": 1, "min-zoomed-font-size": 4,
      "z-index-compare": "manual", "z-index": 12, "overlay-opacity": 0,
    }),
    line("edge", "line"),
    // The ends of dashes are round in an SVG and flat here, so they are a little longer.
    ...conditions.map((one) => line(`edge.${one.class}`, one.line, one.ink, one.dashes
      ? { "line-style": "dashed", "line-dash-pattern": one.dashes.map((long) => long + 1), width: 2 } : {})),
    canvasRule("edge.exit", { "line-style": "dashed", "line-dash-pattern": [8, 5], "target-arrow-fill": "hollow" }),
    canvasRule("edge.implied", { "line-style": "dashed", "line-dash-pattern": [1, 5] }),
    canvasRule("edge.start", { events: "no" }),
    // A line to what a person has moved goes straight there.
    canvasRule("edge.free", {
      "curve-style": "bezier", "source-endpoint": "outside-to-node-or-label", "target-endpoint": "outside-to-node-or-label",
    }),
    line("edge.never", "rim", "soft", { "line-style": "dashed", "line-dash-pattern": [1, 9] }),
    line("edge.only-a", "A", "", { width: 3 }),
    line("edge.only-b", "B", "", { width: 3 }),
    line("edge.taken", "now", "now-ink", { width: 3.4, "font-weight": "bold", "text-border-width": 2.2, "z-index": 14 }),
    canvasRule("edge.break", {
      "source-label": "●", "source-text-offset": 16, color: c.break, "font-size": 17, "text-background-opacity": 0, "text-border-width": 0,
    }),
    canvasRule("node.selected", { "underlay-color": c.pick, "underlay-opacity": 0.55, "underlay-padding": 8 }),
    canvasRule("node.loop.selected", { "underlay-opacity": 0, "border-width": 3, "border-color": c.pick, "border-opacity": 1 }),
    canvasRule("edge.selected", { "underlay-color": c.pick, "underlay-opacity": 0.5, "underlay-padding": 6 }),
    canvasRule("node.marked", { "underlay-color": c.pick, "underlay-opacity": 0.3, "underlay-padding": 6 }),
    canvasRule("node.aimed", { "underlay-color": c.aim, "underlay-opacity": 0.6, "underlay-padding": 9 }),
    canvasRule("node.source", { "underlay-color": c.generator, "underlay-opacity": 0.55, "underlay-padding": 8 }),
    canvasRule(".found", { "underlay-color": c.now, "underlay-opacity": 0.5, "underlay-padding": 10 }),
  ];
}

/** Whether the page is dark. */
export function canvasIsDark(node) {
  const said = document.body.dataset.jpThemeLight;
  if (said !== undefined) return said === "false";
  if (document.body.classList.contains("vscode-dark")) return true;
  for (let one = node; one; one = one.parentElement) {
    const found = /rgba?\((\d+), (\d+), (\d+)(?:, ([\d.]+))?\)/.exec(getComputedStyle(one).backgroundColor);
    if (found && found[4] !== "0") return Number(found[1]) * 0.3 + Number(found[2]) * 0.6 + Number(found[3]) * 0.1 < 110;
  }
  return false;
}

/** Fill the colours of a theme into a picture; its own text holds no such places. */
export function canvasColoured(svg, colours) {
  return svg.replace(/@([A-Za-z_-]+)@/g, (whole, use) => colours[use] || whole);
}

/** A picture as an address that cytoscape and an image take. */
export function canvasAddress(svg) {
  return `data:image/svg+xml;utf8,${encodeURIComponent(svg)}`;
}
