// Numbers, counts, and rows from a spreadsheet.
import assert from "node:assert/strict";
import { test } from "node:test";
import { counted, countWords, durationWords, rowsFor, rowsOf } from "../../materia_nb/widgets/front/words.js";
import { notificationText, usageWords } from "../../materia_nb/widgets/front/bar.js";

test("a duration shows only significant digits", () => {
  assert.deepEqual([0, -5, 940, 9949, 9950, 59_499, 102_000, 7_384_000].map(durationWords), ["0.0 s", "0.0 s", "0.9 s", "9.9 s", "10 s", "59 s", "1:42", "2:03:04"]);
});

test("a count is shown in full or abbreviated", () => {
  assert.deepEqual([999, 1000, 15_400, 1_000_000, 2_500_000].map((n) => countWords(n, true)), ["999", "1k", "15.4k", "1M", "2.5M"]);
  assert.equal(countWords(15_400), "15,400");
  assert.deepEqual([0, 1, 2].map((n) => counted(n, "item")), ["0 items", "1 item", "2 items"]);
});

test("a text field has as many rows as its text needs", () => {
  assert.equal(rowsFor("a\nb"), 2);
  assert.equal(rowsFor("x".repeat(120)), 3);
});

test("pasted spreadsheet rows may contain tabs, line breaks and quotes in quoted cells", () => {
  assert.deepEqual(rowsOf("a\tb\r\nc\td\n"), [["a", "b"], ["c", "d"]]);
  assert.deepEqual(rowsOf('title\t"two\nlines, ""quoted"""\nnext\tplain'), [["title", 'two\nlines, "quoted"'], ["next", "plain"]]);
  assert.deepEqual(rowsOf('"a\tb"\tc'), [["a\tb", "c"]]);
  assert.deepEqual(rowsOf('a "word"\tb'), [['a "word"', "b"]], "a quote inside a cell is a quote");
  assert.deepEqual(rowsOf('"open\tb'), [['"open', "b"]], "a quote that is not closed is one too");
  assert.deepEqual(rowsOf("a\rb"), [["a"], ["b"]]);
  assert.deepEqual(rowsOf("\n \t \n\n"), [], "empty rows are left out");
});

test("unknown usage is not shown as zero", () => {
  const used = { tokens: 15_400, cost: 0.5, most: 20_000, mostCost: 2, counts: "3 steps" };
  assert.deepEqual(usageWords(used), { used: "15,400", long: "15.4k of 20k tokens · $0.5000 of $2.00", short: "15.4k/20k tok", full: "3 steps · 15,400 of 20,000 tokens · $0.5000 of $2.00" });
  assert.equal(usageWords({ ...used, tokens: null, cost: null, unknown: 2 }).full, "3 steps · unknown of 20,000 tokens, unknown of 2 turns · cost unknown of $2.00");
  assert.deepEqual(usageWords({ tokens: 0, counts: "1 step" }), { used: "0", long: "", short: "", full: "1 step" });
});

test("a notification is shown when a long run stops while the page is hidden", () => {
  const running = { tone: "working", since: 1_000, busy: true }, waiting = { tone: "wants", words: "Review waits for you", busy: false };
  assert.equal(notificationText(running, waiting, 61_000, true), "Review waits for you");
  assert.equal(notificationText(running, waiting, 60_999, true), null, "the run was short");
  assert.equal(notificationText(running, waiting, 61_000, false), null, "somebody sees the page");
  assert.equal(notificationText(running, { ...running, words: "Running" }, 61_000, true), null, "the run continues");
  assert.equal(notificationText(running, { ...waiting, tone: "paused" }, 61_000, true), null, "somebody paused it");
  assert.equal(notificationText(waiting, waiting, 61_000, true), null, "nothing ran");
});
