// A page that plays a loadout: the answers in its link, and the odds beside them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { follow, isReached, oddsText, shortestSteps } from "../../materia_nb/widgets/front/play.js";

const play = {
  texts: ["Ask", "yes", "no", "because", "Complete"],
  start: 3,
  states: [
    [0, "Socket-1", null, 0.5, 2, [[1, 1, 3, 1], [0, 2, 3, 1]]],
    [4, null, "complete", 1, 0, []],
  ],
};

test("the answers in a link are replayed", () => {
  assert.deepEqual(follow(play, "#1.1.0").map((step) => step.move[0]), [0, 0, 1]);
  assert.deepEqual(follow(play, "#1.0").map((step) => step.number), [1, 0]);
});

test("a link is replayed up to its first answer that does not exist", () => {
  for (const link of ["", "#", "#7", "#x", "#-1", "#1.5", "#0.0", "#__proto__", "#0.constructor"]) {
    assert.ok(follow(play, link).length <= 1, link);
  }
  assert.deepEqual(follow(play, "#1.x.0").map((step) => step.number), [1]);
});

test("odds are compared with the odds before the answer", () => {
  assert.equal(oddsText(play.states[0], undefined, 0), "Chance to complete: 50.0 %. Turns still to come: 2.0 on average. Turns so far: 0.");
  assert.equal(oddsText(play.states[1], play.states[0], 1), "Chance to complete: 100.0 % (before: 50.0 %). Turns still to come: 0.0 on average (before: 2.0). Turns so far: 1.");
});

const level = { name: "l", goal: "", event: "complete", without: null, since: null, targets: [], paths: [], changes: [] };
const draft = {
  texts: ["Draft", "Check", "Complete", "answers", "✗ not satisfied", "✓ satisfied", "because", "edge:0:B"],
  start: 6,
  states: [
    [0, "A", null, 0.5, 2, [[1, 3, 6, 1]]],
    [1, "B", null, 0.5, 2, [[0, 4, 6, 1, 7], [2, 5, 6, 1]]],
    [2, null, "complete", 1, 0, []],
    [2, "B", "edge_traversals_exhausted", 0, 0, []],
  ],
};
const numbers = (task) => shortestSteps(draft, { ...level, ...task })?.map((step) => step.number) ?? null;

test("the shortest steps to an event are found", () => {
  assert.deepEqual(numbers({}), [0, 1]);
  assert.deepEqual(numbers({ event: "A" }), [0, 0]);
  assert.deepEqual(numbers({ event: "edge:0:B" }), [0, 0]);
  assert.equal(numbers({ event: "failed" }), null);
});

test("an event can be required before the goal, and another can be forbidden", () => {
  assert.deepEqual(numbers({ since: "B ✗" }), [0, 0, 0, 1]);
  assert.equal(numbers({ without: "B" }), null);
  assert.deepEqual(numbers({ since: "edge:0:B", without: "B ✗" }), [0, 0, 0, 1]);
  assert.equal(numbers({ since: "B ✗", without: "A" }), null);
});

test("steps reach a goal only if they contain its events in order", () => {
  const reached = (link, task) => isReached(draft, { ...level, ...task }, follow(draft, link));
  assert.equal(reached("#0.1", {}), true);
  assert.equal(reached("#0", {}), false);
  assert.equal(reached("#0.1", { since: "B ✗" }), false);
  assert.equal(reached("#0.0.0.1", { since: "B ✗" }), true);
});

test("every failure counts as failed", () => {
  const failing = { ...draft, states: draft.states.with(1, [1, "B", null, 0.5, 2, [[3, 4, 6, 1]]]) };
  assert.equal(isReached(failing, { ...level, event: "failed" }, follow(failing, "#0.0")), true);
});
