/** Draws read-only blocks from the kernel: text, tables and collapsible sections. */
import { actButton, h, button, isNew, neighbour, onKeys, redraw } from "./dom.js";

/**
 * Draw blocks into an element if they have changed; sections that were opened stay open.
 * @param {HTMLElement} host
 * @param {Blocks|undefined} blocks
 * @param {((kind: any, values?: any) => void) & {linkTo?: LinkTo}} send
 * @param {Record<string, string>} [files] paths of the files that the blocks mention and the server can open, by mentioned name
 */
export function drawBlocks(host, blocks = [], send, files = {}) {
  if (!isNew(host, [blocks, files])) return;
  const open = new Map([...host.querySelectorAll("details")].map((details) => [details.dataset.fold ?? "", details.open]));
  const say = (/** @type {string} */ text) => withLinks(text, files, send.linkTo);
  redraw(host, () => blocks.map((block) => blockNode(/** @type {Block} */ (block), open, send, say)));
}

/** Pattern of a possible file name; keep it equal to _FILE_NAME in widgets/answering.py. */
const NAME = /("[^"\n]+"|'[^'\n]+'|[^\s"'`<>()[\]{},;:]*[^\s"'`<>()[\]{},;:.])/;

/** Return a text in which file names are links. @param {string} text @param {Record<string, string>} files @param {LinkTo} [linkTo] @returns {Child} */
function withLinks(text, files, linkTo) {
  if (!linkTo || !Object.keys(files).length) return text;
  return text.split(NAME).map((part) => {
    const name = part.replace(/^["']+|["']+$/g, ""), link = Object.hasOwn(files, name) && linkTo(files[name]);
    return link ? h("a", { class: "mnb-link", title: `open ${name}`, ...link }, part) : part;
  });
}

/** @param {Block} block @param {Map<string, boolean>} open @param {(kind: any, values?: any) => void} send @param {(text: string) => Child} [say] @returns {Child} */
function blockNode(block, open, send, say = (text) => text) {
  switch (block.is) {
    case "head":
      return h("h4", { class: `mnb-h ${block.small ? "mnb-h-small" : ""} ${block.tone ? "mnb-t-" + block.tone : ""}` }, say(block.text));
    case "line":
      return h("p", { class: `mnb-p ${block.tone ? "mnb-t-" + block.tone : ""}` }, say(block.text));
    case "pre":
      return [block.title ? h("h4", { class: "mnb-h mnb-h-small" }, block.title) : null, h("pre", { class: "mnb-pre", tabindex: "0" }, say(block.text))];
    case "diff":
      return h("pre", { class: "mnb-pre mnb-diff", tabindex: "0", "aria-label": "what was changed" }, block.rows.map(([sign, text]) => h(sign === "+" ? "ins" : sign === "-" ? "del" : "span", {}, `${sign} ${text}\n`)));
    case "words":
      return h("p", { class: "mnb-p mnb-words" }, wordParts(block.parts));
    case "facts":
      return h("dl", { class: "mnb-facts" }, block.rows.map(([name, value]) => [h("dt", {}, name), h("dd", {}, cellNode(value))]));
    case "table":
      return h("div", { class: "mnb-tablebox", tabindex: "0", role: "group", "aria-label": block.headers.filter(Boolean).join(", ") },
        h("table", { class: "mnb-table" },
          h("thead", {}, h("tr", {}, block.headers.map((name) => (name ? h("th", { scope: "col" }, name) : h("td", {}))))),
          h("tbody", {}, block.rows.map((row, index) => h("tr", index === block.marked ? { class: "mnb-first" } : {}, row.map((cell) => h("td", {}, cellNode(cell))))))));
    case "fold": {
      const node = h("details", { class: "mnb-fold", "data-fold": block.title }, h("summary", {}, block.title), block.inside.map((inner) => blockNode(inner, open, send, say)));
      node.open = open.get(block.title) ?? block.open;
      return node;
    }
    case "tree":
      return h("div", { class: "mnb-tree" }, treeNode(block.root, block.opened, open, ""));
    case "picture":
      return [["svg", "light"], ["dark", "dark"]].map(([name, page]) => h("img", { class: `mnb-picture mnb-on-${page}`, alt: block.text, src: `data:image/svg+xml;utf8,${encodeURIComponent(block[name])}` }));
    case "axis":
      return axisNode(block, send);
    case "action":
      return h("p", { class: "mnb-p" }, `${block.text} `, (["select", "lane"].includes(block.kind) ? button : actButton)(block.words, block.explained, () => send(block.kind, block.values), { class: "mnb-b mnb-small" }));
    default:
      throw new Error(`unknown kind of block: ${block.is}`);
  }
}

/** Return a table cell: text, a status with its sign, or a number over a bar. @param {any} cell @returns {Child} */
function cellNode(cell) {
  if (typeof cell !== "object") return cell;
  if (cell.bar) return h("span", { class: "mnb-barcell", style: cell.bar.map((/** @type {number} */ position, /** @type {number} */ index) => `--bar-${index}:${share(position)}`).join(";") }, cell.text);
  return [h("span", { style: `color:${cell.colour}`, "aria-hidden": "true" }, `${cell.sign} `), cell.text];
}

const share = (/** @type {number} */ part) => `${(part * 100).toFixed(3)}%`;

/** Rows of bars on one time axis; see TimeAxis in display/time_axis.py. @param {Block} axis @param {(kind: any, values?: any) => void} send */
const axisNode = (axis, send) =>
  h("div", { class: "mnb-axis", role: "group", "aria-label": axis.text },
    h("div", { class: "mnb-axisrow" }, h("span", {}), h("div", { class: "mnb-axisbars" }, axis.ticks.map(([position, label], index) =>
      h("span", { class: index + 1 === axis.ticks.length ? "mnb-tick mnb-tick-last" : "mnb-tick", style: `left:${share(position)}` }, label)))),
    axis.rows.map(([name, bars], row) => h("div", { class: "mnb-axisrow" },
      button(name, axis.lanes[row] ? `show lane ${name} in the inspector` : "show the cast itself in the inspector", () => send("lane", { lane: axis.lanes[row] }), { class: "mnb-axisname" }),
      barsOf(bars, axis.lanes[row], axis.at, send))),
    h("p", { class: "mnb-p mnb-dim" }, axis.text));

/**
 * Return the bars of a row. A click on a bar selects its step. Tab stops once per row, and the arrow keys move between bars.
 * @param {[number, number, string, string, string, number][]} bars @param {string} lane @param {[]|[string, number]} at @param {(kind: any, values?: any) => void} send
 */
function barsOf(bars, lane, at, send) {
  const selectedIndex = bars.findIndex((bar) => at[0] === lane && at[1] === bar[5]), stop = selectedIndex >= 0 ? selectedIndex : bars.findIndex((bar) => bar[5]);
  const node = h("div", { class: "mnb-axisbars" }, bars.map(([left, wide, kind, label, title, step], index) => {
    const isSelected = at[0] === lane && at[1] === step && step > 0;
    const look = { class: `mnb-axisbar mnb-axis-${kind}${isSelected ? " mnb-axis-here" : ""}`, style: `left:${share(left)};width:${share(wide)}` };
    if (!step) return h("span", { ...look, title }, h("span", {}, label));
    const bar = button("", title, () => send("look", { step, lane }), { ...look, "aria-label": `${title}, step ${step}`, "aria-pressed": String(isSelected), "data-key": `${lane} ${index}`, tabindex: index === stop ? "0" : "-1" });
    bar.append(h("span", {}, label));
    return bar;
  }));
  const go = (/** @type {number} */ by) => neighbour([...node.querySelectorAll("button")], by)?.focus();
  onKeys(node, { ArrowRight: () => go(1), ArrowLeft: () => go(-1) });
  return node;
}

/** The removed, added and unchanged parts of a text. @param {[sign: string, text: string][]} parts */
const wordParts = (parts) => parts.map(([sign, text]) => (sign === " " ? text : h(sign === "+" ? "ins" : "del", {}, text)));

/**
 * A JSON value as collapsible nodes; see json_tree in display/escape.py.
 * @typedef {{name: string, kind: string, text: string, cut?: number, words: string, children?: TreeNode[], more?: number, parts?: [string, string][]}} TreeNode
 * @param {TreeNode} node @param {number} opened how many levels are open @param {Map<string, boolean>} open @param {string} above
 * @returns {HTMLElement}
 */
function treeNode(node, opened, open, above) {
  const name = node.name ? [h("span", { class: "mnb-tree-name" }, node.name), ": "] : [];
  if (node.parts) return h("div", { class: "mnb-words" }, name, wordParts(node.parts));
  if (!node.children) {
    const cut = node.cut ? h("i", {}, ` … ${node.cut.toLocaleString("en")} characters`) : null;
    return h("div", {}, name, h("span", { class: node.kind === "str" ? "mnb-tree-text" : "mnb-tree-value" }, node.text), cut);
  }
  const path = `${above}/${node.name}`;
  const more = node.more ? h("div", {}, `… ${node.more.toLocaleString("en")} more`) : null;
  const inside = h("div", { class: "mnb-tree-inside" }, node.children.map((child) => treeNode(child, opened - 1, open, path)), more);
  const branch = h("details", { "data-fold": path }, h("summary", {}, name, node.words), inside);
  branch.open = open.get(path) ?? opened > 0;
  return branch;
}
