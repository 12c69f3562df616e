// What the parts of the surface decide before they draw: items, steps, tables, the palette, keys, the wire.
import assert from "node:assert/strict";
import { test } from "node:test";
import { kindOfKey } from "../../materia_nb/widgets/front/design_bar.js";
import { actOfKey } from "../../materia_nb/widgets/front/bar.js";
import { sortedBy } from "../../materia_nb/widgets/front/explorer.js";
import { rowsInPage } from "../../materia_nb/widgets/front/grid.js";
import { differ, matchingIndices, plannedState } from "../../materia_nb/widgets/front/items.js";
import { addedBy, matches } from "../../materia_nb/widgets/front/palette.js";
import { sizeWithin } from "../../materia_nb/widgets/front/splitter.js";
import { barOf } from "../../materia_nb/widgets/front/timeline.js";
import { fileName } from "../../materia_nb/widgets/front/canvas_tools.js";
import { makeTalk } from "../../materia_nb/widgets/front/wire.js";

const item = (title, origin, again = false) => ({ title, context: "c", origin, again });

test("the planned state of an item follows from the cast and the edits in the table", () => {
  const stands = ["done", "being worked on", "open"];
  const all = [item("a", 0), item("b", 1), item("c", 2), item("d", null), item("e", 0, true)];
  assert.deepEqual(all.map((one) => plannedState(one, stands, false)), ["done", "being worked on", "open", "new", "again"]);
  assert.equal(plannedState(item("b", 1), stands, true), "to be abandoned");
});

test("items differ in text, order, number or in being reopened", () => {
  
  const items = [["a", "c"], ["b", "c"]];
  const same = [item("a", 0), item("b", 1)];
  assert.equal(differ(same, items), false);
  for (const other of [[item("a", 0)], [item("b", 1), item("a", 0)], [item("a", 0), item("x", 1)], [item("a", 0), item("b", 1, true)], [...same, item("n", null)]]) assert.ok(differ(other, items));
});

test("the open filter includes new and reopened items, and a search also matches item numbers", () => {
  const rows = [item("Plan", 0), item("Build", 1), item("New", null), item("Plan again", 0, true)];
  const stand = (one) => plannedState(one, ["done", "open"], false);
  assert.deepEqual(matchingIndices(rows, stand, "open", ""), [1, 2, 3]);
  assert.deepEqual(matchingIndices(rows, stand, "all", " PLAN "), [0, 3]);
  assert.deepEqual(matchingIndices(rows, stand, "done", "wi-1"), [0]);
});

test("a table of any length renders only the rows in or near the viewport", () => {
  assert.deepEqual(rowsInPage(0, 224, 20, 100_000), [0, 24]);
  assert.deepEqual(rowsInPage(2000, 224, 20, 100_000), [94, 118]);
  assert.deepEqual(rowsInPage(0, 224, 20, 3), [0, 3]);
});

test("steps share one time axis that shortens waits and ends with the last step", () => {
  const first = [true, "1", "", 0, 0, 100, 1, true], last = [true, "1", "", 100, 1, 300, 1, true];
  const one = barOf(first, [300, 1], false), two = barOf(last, [300, 1], false);
  assert.equal(one.left, 0);
  assert.ok(one.waited && !two.waited);
  assert.ok(Math.abs(one.left + one.long + one.fold - two.left) < 1e-9, "one begins where the other, and its wait, ended");
  assert.ok(Math.abs(two.left + two.long - 100) < 1e-9);
  assert.ok(barOf([false, "", "", 0, 0, 0, 0, true], [0, 0], false).works);
});

test("a palette search must match every word, and Enter adds only an unambiguous match", () => {
  assert.ok(matches("plan the work, agent", " plan AGENT "));
  assert.ok(!matches("plan the work", "plan build"));
  const all = [{ title: "agents", entries: ["Plan", "Planner"].map((id) => ({ id, label: id, about: "", kind: "agent", generator: false, placed: 0 })) }];
  assert.equal(addedBy("plan", all, ["Plan", "Planner"]), "Plan", "the one of that name, though there are others");
  assert.equal(addedBy("planne", all, ["Planner"]), "Planner");
  assert.equal(addedBy("pla", all, ["Plan", "Planner"]), null, "one must choose");
  assert.equal(addedBy("New", all, []), "New");
});

test("keys typed into a field are left to the field, except for saving", () => {
  const free = { typing: false, selecting: false }, typing = { typing: true, selecting: false };
  const mod = (key, shift = false) => ({ key, mod: true, shift });
  assert.deepEqual(["s", "z", "y", "d", "q"].map((key) => kindOfKey(mod(key), free)), ["save", "undo", "redo", "duplicate", undefined]);
  assert.equal(kindOfKey(mod("z", true), free), "redo");
  assert.deepEqual([kindOfKey(mod("s"), typing), kindOfKey(mod("z"), typing)], ["save", undefined]);
  assert.equal(kindOfKey(mod("c"), { typing: false, selecting: true }), undefined, "selected text is copied");
  assert.deepEqual([kindOfKey({ key: "delete", mod: false, shift: false }, free), kindOfKey({ key: "delete", mod: false, shift: false }, typing)], ["delete", undefined]);
});

test("a resized part stays between its minimum size and the available room", () => {
  assert.deepEqual([sizeWithin(50, 220, 600), sizeWithin(900, 220, 600), sizeWithin(300.4, 220, 600), sizeWithin(300, 220, 100)], [220, 600, 300, 220]);
});

test("a file name keeps only the safe characters of a loadout's name", () => {
  assert.deepEqual([fileName("Plan / Build: ../x", "svg"), fileName("…", "png"), fileName(undefined, "png")], ["Plan-Build-x.svg", "graph.png", "graph.png"]);
});

test("an answer resolves the question with the same token", async () => {
  
  const heard = [];
  
  const sent = [];
  const model = { get: () => null, send: (message) => sent.push(message), on: (_, act) => heard.push(act), off() {}, widget_manager: (null) };
  const talk = makeTalk(model);
  const first = talk.ask("value", { path: ["a"] }), second = talk.ask("value", { path: ["b"] });
  assert.notEqual(sent[0].token, sent[1].token);
  heard[0]({ kind: "look" });
  heard[0]({ token: sent[1].token, text: "B" });
  heard[0]({ token: sent[0].token, text: "A" });
  assert.deepEqual([(await first).text, (await second).text], ["A", "B"]);
});

test("a message sent without a kernel is dropped with a warning", (t) => {
  const warned = t.mock.method(console, "warn", () => {});
  const talk = makeTalk(({ on() {}, get() {}, send() { throw new Error("gone"); } }));
  talk("step");
  assert.equal(warned.mock.callCount(), 1);
});

test("a click on a column header sorts by it and a second click reverses the order", () => {
  assert.equal(sortedBy({ by: "when", down: true }, "cost"), true, "the dearest first");
  assert.equal(sortedBy({ by: "when", down: true }, "request"), false, "words from a to z");
  assert.equal(sortedBy({ by: "request", down: false }, "request"), true);
});

test("debugger keys work only without additional modifier keys", () => {
  const act = (name, more = {}) => actOfKey({ key: name, shiftKey: false, ctrlKey: false, altKey: false, metaKey: false, ...more });
  assert.deepEqual([act("F8"), act("F10"), act("F10", { shiftKey: true })], ["run", "step", "run_item"]);
  assert.deepEqual([act("F8", { shiftKey: true }), act("F10", { ctrlKey: true }), act("F9"), act("s")], [null, null, null, null]);
});
