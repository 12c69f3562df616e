// Taps a page that plays a loadout, without a browser: node page_taps.cjs PAGE LEARNER < taps, a JSON list. A tap is the
// number of an answer, or null to start again. Prints a JSON list that contains what the page shows after each tap.
"use strict";
const fs = require("node:fs");
const process = require("node:process");
const vm = require("node:vm");

class PageNode {
  constructor(tag, attributes = {}) {
    Object.assign(this, { tag, attributes, children: [], classes: new Set(), act: null });
    this.classList = { toggle: (name, isSet) => (isSet ? this.classes.add(name) : this.classes.delete(name)) };
  }

  get textContent() { return this.children.map((child) => (child instanceof PageNode ? child.textContent : child)).join(""); }
  set textContent(text) { this.children = [text]; }
  getAttribute(name) { return this.attributes[name] ?? null; }
  setAttribute(name, value) { this.attributes[name] = value; }
  append(...children) { this.children.push(...children); }
  replaceChildren(...children) { this.children = children; }
  addEventListener(_, act) { this.act = act; }
  focus() {}
  scrollIntoView() {}

  click() {
    if (this.act) this.act();
    else address.hash = this.attributes.href;
  }

  /** Return all nodes below this node, in order. */
  nodes(collected = []) {
    for (const child of this.children) {
      if (!(child instanceof PageNode)) continue;
      collected.push(child);
      child.nodes(collected);
    }
    return collected;
  }

  querySelectorAll(selector) { return this.nodes().filter(SELECTORS[selector]); }
  querySelector(selector) { return this.nodes().find(SELECTORS[selector]) ?? null; }
}

const SELECTORS = {
  "[data-edge]": (node) => "data-edge" in node.attributes,
  "[data-socket]": (node) => "data-socket" in node.attributes,
  ".answer": (node) => node.attributes.class === "answer",
  "a, button": (node) => node.tag === "a" || node.tag === "button",
};

const [, , path, learner] = process.argv;
let hash = "", changed = () => {};
const address = {
  search: learner === undefined ? "" : `?learner=${encodeURIComponent(learner)}`,
  get hash() { return hash; },
  set hash(value) {
    const before = hash;
    hash = value === "#" ? "" : value;
    if (hash !== before) changed();
  },
  replace(value) { this.hash = value; },
};

const page = fs.readFileSync(path, "utf8");
const drawn = [...page.matchAll(/ (data-socket|data-edge)="([^"]*)"/g)].map(([, name, value]) => new PageNode("g", { [name]: value }));
const main = new PageNode("main"), data = new PageNode("script");
data.append(/<script type="application\/json" id="play-data">(.*?)<\/script>/s.exec(page)[1]);

vm.runInNewContext(/<script>(.*)<\/script>/s.exec(page)[1], {
  addEventListener: (name, act) => { if (name === "hashchange") changed = act; },
  clearInterval: () => {},
  document: {
    body: new PageNode("body"),
    createElement: (tag) => new PageNode(tag),
    getElementById: (id) => ({ play: main, "play-data": data })[id] ?? null,
    head: new PageNode("head"),
    querySelectorAll: (selector) => drawn.filter(SELECTORS[selector]),
  },
  localStorage: { getItem: () => null, setItem: () => {} },
  location: address,
  matchMedia: () => ({ matches: false, addEventListener: () => {} }),
  URLSearchParams,
});

let nodes = main.nodes();
const results = JSON.parse(fs.readFileSync(0, "utf8")).map((tap) => {
  if (tap !== null) nodes.filter(SELECTORS[".answer"])[tap].click();
  else address.hash = nodes.find((node) => node.textContent === "Start again")?.getAttribute("href") ?? "";
  nodes = main.nodes();
  const textOf = (isWanted) => nodes.find(isWanted)?.textContent ?? "";
  return {
    heading: textOf((node) => node.tag === "h2"),
    sockets: drawn.filter((node) => node.classes.has("here")).map((node) => node.getAttribute("data-socket")),
    turns: Number(/Turns so far: (\d+)/.exec(textOf((node) => node.tag === "div"))?.[1] ?? 0),
    alert: textOf((node) => node.attributes.role === "alert"),
    solved: textOf((node) => node.attributes.role === "status").startsWith("\u2713"),
  };
});
process.stdout.write(JSON.stringify(results));
