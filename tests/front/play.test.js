// A page that plays a loadout: the answers in its link, and the odds beside them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { follow, oddsText } from "../../materia_nb/widgets/front/play.js";

const play = {
  texts: ["Ask", "yes", "no", "because", "Complete"],
  start: 3,
  states: [
    [0, "Socket-1", null, 0.5, 2, [[1, 1, 3, 1], [0, 2, 3, 1]]],
    [4, null, "complete", 1, 0, []],
  ],
};

test("the answers of a link are followed", () => {
  assert.deepEqual(follow(play, "#1.1.0").map((step) => step.move[0]), [0, 0, 1]);
  assert.deepEqual(follow(play, "#1.0").map((step) => step.number), [1, 0]);
});

test("a link is followed as far as its answers exist", () => {
  for (const link of ["", "#", "#7", "#x", "#-1", "#1.5", "#0.0", "#__proto__", "#0.constructor"]) {
    assert.ok(follow(play, link).length <= 1, link);
  }
  assert.deepEqual(follow(play, "#1.x.0").map((step) => step.number), [1]);
});

test("odds are compared with those before the answer", () => {
  assert.equal(oddsText(play.states[0], undefined, 0), "Chance to complete: 50.0 %. Turns still to come: 2.0 on average. Turns so far: 0.");
  assert.equal(oddsText(play.states[1], play.states[0], 1), "Chance to complete: 100.0 % (before: 50.0 %). Turns still to come: 0.0 on average (before: 2.0). Turns so far: 1.");
});
