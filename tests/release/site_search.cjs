// Searches a built site as its search page does: node site_search.cjs SITE < queries, a JSON list; the pages found, best first.
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const process = require("node:process");
const vm = require("node:vm");

const site = process.argv[2];
const context = vm.createContext({
  document: { getElementById: () => null }, console, URLSearchParams, SPHINX_HIGHLIGHT_ENABLED: false,
  DOCUMENTATION_OPTIONS: { FILE_SUFFIX: ".html", LINK_SUFFIX: ".html" }, _ready: () => {}, _: (text) => text,
});
context.window = context;
const page = fs.readFileSync(path.join(site, "search.html"), "utf8");
const scripts = [...page.matchAll(/<script src="_static\/([^"?]+)/g)].map((found) => found[1]);
for (const name of scripts.filter((one) => /language_data|stemmer|searchtools/.test(one))) {
  vm.runInContext(fs.readFileSync(path.join(site, "_static", name), "utf8"), context, { filename: name });
}
const index = fs.readFileSync(path.join(site, "searchindex.js"), "utf8");
vm.runInContext(`${index}; globalThis.search = (text) => Search._performSearch(...Search._parseQuery(text));`, context);
const queries = JSON.parse(fs.readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(queries.map((query) => context.search(query).reverse().map(([page_, title, anchor]) => [page_, title, anchor]))));
