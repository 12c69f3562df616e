// What the canvas goes by: what is kept of what was done here, menus, where an arrow key leads.
import assert from "node:assert/strict";
import { test } from "node:test";
import { choices, nearest, stillPending } from "../../materia_nb/widgets/front/canvas_state.js";
import { between, isInside } from "../../materia_nb/widgets/front/canvas_design.js";
import { bounded, zoomToFit } from "../../materia_nb/widgets/front/canvas_view.js";

const drawn = () => true;

test("an answer to an earlier act does not undo a later one", () => {
  assert.deepEqual(stillPending({ selected: "n:b" }, { selected: "n:a" }, drawn), { selected: "n:b" });
});

test("what the kernel says too is kept no longer", () => {
  assert.deepEqual(stillPending({ selected: "n:b", marked: ["n:a", "n:b"] }, { selected: "n:b", marked: ["n:b", "n:a"] }, drawn), {});
});

test("nothing selected is as good as said by null or not at all", () => {
  assert.deepEqual(stillPending({ selected: null, marked: [] }, {}, drawn), {});
  assert.deepEqual(stillPending({ selected: null }, { selected: "n:a" }, drawn), { selected: null });
});

test("what is no longer drawn is not waited for", () => {
  assert.deepEqual(stillPending({ selected: "n:gone", marked: ["n:a"] }, { selected: "n:a" }, (id) => id !== "n:gone"), { marked: ["n:a"] });
});

const situation = { mode: "cast", connecting: false, follows: true, stops: false, folded: false };
const offered = (kind, more) => choices(kind, { ...situation, ...more }).map(([, act]) => act);

test("a menu offers what can be done with an element where it is", () => {
  assert.deepEqual(offered("socket"), ["open", "break", "breakAfter", "breakWhere", "runTo", "compare", "copy", "centre"]);
  assert.deepEqual(offered("socket", { stops: true }), ["open", "break", "breakWhere", "runTo", "compare", "copy", "centre"]);
  assert.deepEqual(offered("edge"), ["open", "break", "copy"]);
  assert.deepEqual(offered("loop"), ["open", "fold", "copy"]);
  assert.deepEqual(offered("socket", { follows: false }), ["open", "copy", "centre"], "there is no cast that could stop");
  assert.deepEqual(offered("socket", { mode: "design", connecting: true }), ["connect", "open", "lead", "delete", "copy", "centre"]);
  assert.deepEqual(offered("edge", { mode: "design", connecting: true }), ["open", "delete", "copy"], "a line leads to no line");
});

test("a menu says whether it takes away or sets, folds or unfolds", () => {
  const words = (kind, more) => choices(kind, { ...situation, ...more }).map(([one]) => one);
  assert.ok(words("edge", { stops: true }).includes("Remove the breakpoint"));
  assert.ok(words("loop", { folded: true }).includes("Unfold the loop"));
});

test("an arrow key leads to the nearest, what stands straight there before what stands aslant", () => {
  const points = [{ x: 100, y: 0 }, { x: 60, y: 50 }, { x: -50, y: 0 }, { x: 2, y: 0 }];
  assert.equal(nearest({ x: 0, y: 0 }, [1, 0], points), 0);
  assert.equal(nearest({ x: 0, y: 0 }, [-1, 0], points), 2);
  assert.equal(nearest({ x: 0, y: 0 }, [0, 1], points), 1);
  assert.equal(nearest({ x: 0, y: 0 }, [0, -1], points), -1, "there is none");
});

test("a frame is the same from whichever corner it is drawn", () => {
  const box = between({ x: 30, y: 5 }, { x: 10, y: 25 });
  assert.deepEqual(box, between({ x: 10, y: 25 }, { x: 30, y: 5 }));
  assert.deepEqual([isInside({ x: 20, y: 15 }, box), isInside({ x: 20, y: 26 }, box), isInside({ x: 31, y: 15 }, box)], [true, false, false]);
});

test("a picture is zoomed until it fits, and never more than can be read at a glance", () => {
  assert.equal(zoomToFit([200, 1016], [400, 1000]), 0.5);
  assert.equal(zoomToFit([5000, 5000], [10, 10]), 1);
});

test("a picture that fits stands in the middle, a larger one leaves no gap", () => {
  assert.equal(bounded(-999, 100, 300), 100);
  assert.equal(bounded(50, 500, 300), 0);
  assert.equal(bounded(-900, 500, 300), -200);
  assert.equal(bounded(-100, 500, 300), -100);
});
