/** Draws what is only to be read: blocks of text, tables and folds, as the kernel tells them. */
import { actButton, h, button, isNew, neighbour, onKeys, redraw } from "./dom.js";

/**
 * Draw blocks into an element, if they are others than it shows; folds that were opened stay open.
 * @param {HTMLElement} host
 * @param {Blocks|undefined} blocks
 * @param {((kind: any, values?: any) => void) & {linkTo?: LinkTo}} send
 * @param {Record<string, string>} [files] those that the blocks name and that can be opened, each as it is named
 */
export function drawBlocks(host, blocks = [], send, files = {}) {
  if (!isNew(host, [blocks, files])) return;
  const open = new Map([...host.querySelectorAll("details")].map((one) => [one.dataset.fold ?? "", one.open]));
  const say = (/** @type {string} */ text) => withLinks(text, files, send.linkTo);
  redraw(host, () => blocks.map((one) => blockNode(/** @type {Block} */ (one), open, send, say)));
}

/** As in widgets/answering.py: what may name a file. */
const NAME = /("[^"\n]+"|'[^'\n]+'|[^\s"'`<>()[\]{},;:]*[^\s"'`<>()[\]{},;:.])/;

/** A text in which the files that it names are links. @param {string} text @param {Record<string, string>} files @param {LinkTo} [linkTo] @returns {Child} */
function withLinks(text, files, linkTo) {
  if (!linkTo || !Object.keys(files).length) return text;
  return text.split(NAME).map((part) => {
    const name = part.replace(/^["']+|["']+$/g, ""), link = Object.hasOwn(files, name) && linkTo(files[name]);
    return link ? h("a", { class: "mnb-link", title: `open ${name}`, ...link }, part) : part;
  });
}

/** @param {Block} one @param {Map<string, boolean>} open @param {(kind: any, values?: any) => void} send @param {(text: string) => Child} [say] @returns {Child} */
function blockNode(one, open, send, say = (text) => text) {
  switch (one.is) {
    case "head":
      return h("h4", { class: `mnb-h ${one.small ? "mnb-h-small" : ""} ${one.tone ? "mnb-t-" + one.tone : ""}` }, say(one.text));
    case "line":
      return h("p", { class: `mnb-p ${one.tone ? "mnb-t-" + one.tone : ""}` }, say(one.text));
    case "pre":
      return [one.title ? h("h4", { class: "mnb-h mnb-h-small" }, one.title) : null, h("pre", { class: "mnb-pre", tabindex: "0" }, say(one.text))];
    case "diff":
      return h("pre", { class: "mnb-pre mnb-diff", tabindex: "0", "aria-label": "what was changed" }, one.rows.map(([sign, text]) => h(sign === "+" ? "ins" : sign === "-" ? "del" : "span", {}, `${sign} ${text}\n`)));
    case "words":
      return h("p", { class: "mnb-p mnb-words" }, wordParts(one.parts));
    case "facts":
      return h("dl", { class: "mnb-facts" }, one.rows.map(([name, value]) => [h("dt", {}, name), h("dd", {}, cellNode(value))]));
    case "table":
      return h("div", { class: "mnb-tablebox", tabindex: "0", role: "group", "aria-label": one.headers.filter(Boolean).join(", ") },
        h("table", { class: "mnb-table" },
          h("thead", {}, h("tr", {}, one.headers.map((name) => (name ? h("th", { scope: "col" }, name) : h("td", {}))))),
          h("tbody", {}, one.rows.map((row, place) => h("tr", place === one.marked ? { class: "mnb-first" } : {}, row.map((cell) => h("td", {}, cellNode(cell))))))));
    case "fold": {
      const node = h("details", { class: "mnb-fold", "data-fold": one.title }, h("summary", {}, one.title), one.inside.map((inner) => blockNode(inner, open, send, say)));
      node.open = open.get(one.title) ?? one.open;
      return node;
    }
    case "tree":
      return h("div", { class: "mnb-tree" }, treeNode(one.root, one.opened, open, ""));
    case "picture":
      return [["svg", "light"], ["dark", "dark"]].map(([name, page]) => h("img", { class: `mnb-picture mnb-on-${page}`, alt: one.text, src: `data:image/svg+xml;utf8,${encodeURIComponent(one[name])}` }));
    case "axis":
      return axisNode(one, send);
    case "action":
      return h("p", { class: "mnb-p" }, `${one.text} `, (["select", "lane"].includes(one.kind) ? button : actButton)(one.words, one.explained, () => send(one.kind, one.values), { class: "mnb-b mnb-small" }));
    default:
      throw new Error(`no block is ${one.is}`);
  }
}

/** A cell of a table: a text, a status with its sign, or a number over a bar. @param {any} cell @returns {Child} */
function cellNode(cell) {
  if (typeof cell !== "object") return cell;
  if (cell.share !== undefined) return h("span", { class: "mnb-barcell", style: `--share:${share(cell.share)}` }, cell.text);
  return [h("span", { style: `color:${cell.colour}`, "aria-hidden": "true" }, `${cell.sign} `), cell.text];
}

const share = (/** @type {number} */ part) => `${(part * 100).toFixed(3)}%`;

/** Rows of bars on one axis of time, see Axis in cast/views/lanes.py. @param {Block} one @param {(kind: any, values?: any) => void} send */
const axisNode = (one, send) =>
  h("div", { class: "mnb-axis", role: "group", "aria-label": one.text },
    h("div", { class: "mnb-axisrow" }, h("span", {}), h("div", { class: "mnb-axisbars" }, one.ticks.map(([place, words], index) =>
      h("span", { class: index + 1 === one.ticks.length ? "mnb-tick mnb-tick-last" : "mnb-tick", style: `left:${share(place)}` }, words)))),
    one.rows.map(([name, bars], row) => h("div", { class: "mnb-axisrow" },
      button(name, one.lanes[row] ? `show lane ${name} in the inspector` : "show the cast itself in the inspector", () => send("lane", { lane: one.lanes[row] }), { class: "mnb-axisname" }),
      barsOf(bars, one.lanes[row], one.at, send))),
    h("p", { class: "mnb-p mnb-dim" }, one.text));

/**
 * The bars of a row; one that stands for a step shows it when pressed. The tab key stops once in a row, arrows go on from there.
 * @param {[number, number, string, string, string, number][]} bars @param {string} lane @param {[]|[string, number]} at @param {(kind: any, values?: any) => void} send
 */
function barsOf(bars, lane, at, send) {
  const looked = bars.findIndex((bar) => at[0] === lane && at[1] === bar[5]), stop = looked >= 0 ? looked : bars.findIndex((bar) => bar[5]);
  const node = h("div", { class: "mnb-axisbars" }, bars.map(([left, wide, kind, words, title, step], index) => {
    const here = at[0] === lane && at[1] === step && step > 0;
    const look = { class: `mnb-axisbar mnb-axis-${kind}${here ? " mnb-axis-here" : ""}`, style: `left:${share(left)};width:${share(wide)}` };
    if (!step) return h("span", { ...look, title }, h("span", {}, words));
    const bar = button("", title, () => send("look", { step, lane }), { ...look, "aria-label": `${title}, step ${step}`, "aria-pressed": String(here), "data-key": `${lane} ${index}`, tabindex: index === stop ? "0" : "-1" });
    bar.append(h("span", {}, words));
    return bar;
  }));
  const go = (/** @type {number} */ by) => neighbour([...node.querySelectorAll("button")], by)?.focus();
  onKeys(node, { ArrowRight: () => go(1), ArrowLeft: () => go(-1) });
  return node;
}

/** What was taken out and what was put in, and what is the same. @param {[sign: string, text: string][]} parts */
const wordParts = (parts) => parts.map(([sign, text]) => (sign === " " ? text : h(sign === "+" ? "ins" : "del", {}, text)));

/**
 * A JSON value as nodes that open and close, see json_tree in display/escape.py.
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
  const place = `${above}/${node.name}`;
  const more = node.more ? h("div", {}, `… ${node.more.toLocaleString("en")} more`) : null;
  const inside = h("div", { class: "mnb-tree-inside" }, node.children.map((child) => treeNode(child, opened - 1, open, place)), more);
  const branch = h("details", { "data-fold": place }, h("summary", {}, name, node.words), inside);
  branch.open = open.get(place) ?? opened > 0;
  return branch;
}
