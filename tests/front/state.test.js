// What the canvas goes by: what is kept of what was done here, menus, where an arrow key leads.
import assert from "node:assert/strict";
import { test } from "node:test";
import { choices, nearest, stillPending } from "../../materia_nb/widgets/front/canvas_state.js";
import { between, isInside } from "../../materia_nb/widgets/front/canvas_design.js";
import { Drawing } from "../../materia_nb/widgets/front/canvas_drawing.js";
import { bounded, zoomToFit } from "../../materia_nb/widgets/front/canvas_view.js";

const drawn = () => true;

test("the kernel's reply to an earlier action does not undo a later action", () => {
  assert.deepEqual(stillPending({ selected: "n:b" }, { selected: "n:a" }, drawn), { selected: "n:b" });
});

test("pending state is dropped once the kernel confirms it", () => {
  assert.deepEqual(stillPending({ selected: "n:b", marked: ["n:a", "n:b"] }, { selected: "n:b", marked: ["n:b", "n:a"] }, drawn), {});
});

test("an empty selection can be null or omitted", () => {
  assert.deepEqual(stillPending({ selected: null, marked: [] }, {}, drawn), {});
  assert.deepEqual(stillPending({ selected: null }, { selected: "n:a" }, drawn), { selected: null });
});

test("pending state of an element that is no longer drawn is dropped", () => {
  assert.deepEqual(stillPending({ selected: "n:gone", marked: ["n:a"] }, { selected: "n:a" }, (id) => id !== "n:gone"), { marked: ["n:a"] });
});

const situation = { mode: "cast", connecting: false, follows: true, stops: false, folded: false };
const offered = (kind, more) => choices(kind, { ...situation, ...more }).map(([, act]) => act);

test("a context menu offers the actions available for its element", () => {
  assert.deepEqual(offered("socket"), ["open", "break", "breakAfter", "breakWhere", "runTo", "compare", "copy", "centre"]);
  assert.deepEqual(offered("socket", { stops: true }), ["open", "break", "breakWhere", "runTo", "compare", "copy", "centre"]);
  assert.deepEqual(offered("edge"), ["open", "break", "copy"]);
  assert.deepEqual(offered("loop"), ["open", "fold", "copy"]);
  assert.deepEqual(offered("socket", { follows: false }), ["open", "copy", "centre"], "there is no cast that could stop");
  assert.deepEqual(offered("socket", { mode: "design", connecting: true }), ["connect", "open", "lead", "delete", "copy", "centre"]);
  assert.deepEqual(offered("edge", { mode: "design", connecting: true }), ["open", "delete", "copy"], "a line leads to no line");
});

test("menu labels distinguish removing from setting and unfolding from folding", () => {
  const words = (kind, more) => choices(kind, { ...situation, ...more }).map(([one]) => one);
  assert.ok(words("edge", { stops: true }).includes("Remove the breakpoint"));
  assert.ok(words("loop", { folded: true }).includes("Unfold the loop"));
});

test("an arrow key selects the nearest element, preferring one straight ahead", () => {
  const points = [{ x: 100, y: 0 }, { x: 60, y: 50 }, { x: -50, y: 0 }, { x: 2, y: 0 }];
  assert.equal(nearest({ x: 0, y: 0 }, [1, 0], points), 0);
  assert.equal(nearest({ x: 0, y: 0 }, [-1, 0], points), 2);
  assert.equal(nearest({ x: 0, y: 0 }, [0, 1], points), 1);
  assert.equal(nearest({ x: 0, y: 0 }, [0, -1], points), -1, "there is none");
});

test("a selection box is the same whichever corner it is drawn from", () => {
  const box = between({ x: 30, y: 5 }, { x: 10, y: 25 });
  assert.deepEqual(box, between({ x: 10, y: 25 }, { x: 30, y: 5 }));
  assert.deepEqual([isInside({ x: 20, y: 15 }, box), isInside({ x: 20, y: 26 }, box), isInside({ x: 31, y: 15 }, box)], [true, false, false]);
});

test("a picture is zoomed to fit, up to a maximum zoom", () => {
  assert.equal(zoomToFit([200, 1016], [400, 1000]), 0.5);
  assert.equal(zoomToFit([5000, 5000], [10, 10]), 1);
});

test("a picture that fits is centred and a larger picture leaves no gap", () => {
  assert.equal(bounded(-999, 100, 300), 100);
  assert.equal(bounded(50, 500, 300), 0);
  assert.equal(bounded(-900, 500, 300), -200);
  assert.equal(bounded(-100, 500, 300), -100);
});

test("a new look replaces the classes of an element before its selection is marked again", async () => {
  let classes = "socket current selected";
  const element = { data: () => undefined, empty: () => false, scratch() {}, classes: (text) => (classes = text.trim()) };
  const cy = { getElementById: () => element, destroyed: () => false, batch: (act) => act() };
  const marked = new Promise((resolve) => {
    const drawing = new Drawing({ look: { "n:A": { classes: "done" } }, colours: {}, mark: () => resolve(classes) }, cy);
    drawing.bases.set("n:A", "socket");
    drawing.dress(["n:A"]);
  });
  assert.equal(await marked, "socket done");
});
