/** The canvas style: Cytoscape rules for a set of colours. Nodes are our own pictures. */

/** @param {string} selector @param {Record<string, any>} style */
const rule = (selector, style) => ({ selector, style });

/**
 * Return the style rules for a theme.
 * @param {Colours} c
 * @param {DrawnCondition[]} conditions the conditions of edges and their appearance
 * @param {string} font a font family in the format that Cytoscape accepts
 */
export function canvasStyle(c, conditions, font) {
  const line = (/** @type {string} */ selector, /** @type {string} */ use, ink = "", more = {}) =>
    rule(selector, {
      "line-color": c[use], "target-arrow-color": c[use], "text-border-color": c[use], color: c[ink || use], ...more,
    });
  return [
    rule("node", {
      label: "", width: "data(w)", height: "data(h)", shape: "round-rectangle", "background-opacity": 0, "border-width": 0,
      "background-fit": "none", "background-clip": "none", "background-image-containment": "over",
      "background-position-x": "50%", "background-position-y": "50%", "bounds-expansion": 14,
      "z-index-compare": "manual", "z-index": 15, "overlay-opacity": 0,
    }),
    rule("node[img]", {
      "background-image": "data(img)", "background-width": "data(iw)", "background-height": "data(ih)",
    }),
    rule("node.loop", { "z-index": 1 }),
    rule("node.folded", { "z-index": 15 }),
    rule("node.chip", { "z-index": 20 }),
    rule("node.anchor", { events: "no", opacity: 0, "bounds-expansion": 0 }),
    rule("node.sign", { "z-index": 9 }),
    rule("edge", {
      "curve-style": "segments", "edge-distances": "node-position", "segment-weights": "data(ws)",
      "segment-distances": "data(ds)", "source-endpoint": "data(from)", "target-endpoint": "data(to)",
      width: 1.5, "target-arrow-shape": "triangle", "arrow-scale": 0.95, "font-family": font,
      "font-size": 11, "text-margin-x": "data(dx)", "text-margin-y": "data(dy)", "text-background-color": c.plate,
      "text-background-opacity": 1, "text-background-padding": "4px", "text-background-shape": "roundrectangle",
      "text-border-width": 1, "text-border-opacity": 1, "min-zoomed-font-size": 4,
      "z-index-compare": "manual", "z-index": 12, "overlay-opacity": 0,
    }),
    line("edge", "line"),
    // Dashes have round ends in SVG and flat ends here, so they are a little longer.
    ...conditions.map((condition) => line(`edge.${condition.class}`, condition.line, condition.ink, condition.dashes
      ? { "line-style": "dashed", "line-dash-pattern": condition.dashes.map((long) => long + 1), width: 2 } : {})),
    rule("edge.exit", { "line-style": "dashed", "line-dash-pattern": [8, 5], "target-arrow-fill": "hollow" }),
    rule("edge.implied", { "line-style": "dashed", "line-dash-pattern": [1, 5] }),
    // A bar behind the arrow head where lanes fork.
    rule("edge.lanes", { "line-style": "dashed", "line-dash-pattern": [8, 5], "target-arrow-shape": "triangle-tee" }),
    rule("edge.start", { events: "no" }),
    // An edge to a socket that was moved by hand is straight.
    rule("edge.free", {
      "curve-style": "bezier", "source-endpoint": "outside-to-node-or-label", "target-endpoint": "outside-to-node-or-label",
    }),
    line("edge.never", "rim", "soft", { "line-style": "dashed", "line-dash-pattern": [1, 9] }),
    line("edge.only-a", "A", "", { width: 3 }),
    line("edge.only-b", "B", "", { width: 3 }),
    line("edge.taken", "now", "now-ink", { width: 2.5, "font-weight": "bold", "text-border-width": 2.2, "z-index": 14 }),
    rule("edge.break", {
      "source-label": "●", "source-text-offset": 16, color: c.break, "font-size": 17, "text-background-opacity": 0, "text-border-width": 0,
    }),
    rule("node.selected", { "underlay-color": c.pick, "underlay-opacity": 0.55, "underlay-padding": 8 }),
    rule("node.loop.selected", { "underlay-opacity": 0, "border-width": 3, "border-color": c.pick, "border-opacity": 1 }),
    rule("edge.selected", { "underlay-color": c.pick, "underlay-opacity": 0.5, "underlay-padding": 6 }),
    rule("node.marked", { "underlay-color": c.pick, "underlay-opacity": 0.3, "underlay-padding": 6 }),
    rule("node.aimed", { "underlay-color": c.aim, "underlay-opacity": 0.6, "underlay-padding": 9 }),
    rule("node.source", { "underlay-color": c.loop, "underlay-opacity": 0.55, "underlay-padding": 8 }),
    rule(".found", { "underlay-color": c.now, "underlay-opacity": 0.5, "underlay-padding": 10 }),
  ];
}

/** Return true if the page is dark. @param {Element} node */
export function canvasIsDark(node) {
  const light = document.body.dataset.jpThemeLight;
  if (light !== undefined) return light === "false";
  if (document.body.classList.contains("vscode-dark")) return true;
  for (let element = /** @type {Element|null} */ (node); element; element = element.parentElement) {
    const [, r, g, b, alpha] = /rgba?\((\d+), (\d+), (\d+)(?:, ([\d.]+))?\)/.exec(getComputedStyle(element).backgroundColor) ?? [];
    if (r && alpha !== "0") return Number(r) * 0.3 + Number(g) * 0.6 + Number(b) * 0.1 < 110;
  }
  return false;
}

/** Replace the colour placeholders of a picture. The text in pictures never contains placeholders. @param {string} svg @param {Colours} colours */
export const coloured = (svg, colours) => svg.replace(/@([A-Za-z_-]+)@/g, (placeholder, role) => colours[role] || placeholder);

/** Return a picture as a data URL. @param {string} svg */
export const pictureAddress = (svg) => `data:image/svg+xml;utf8,${encodeURIComponent(svg)}`;
