/** Menus of steps, and of comparisons: a step with the last visit of its socket or with another step, and the cast with another cast. */
import { askWhere } from "./bar.js";
import { openMenu } from "./menu.js";

/** Ask the user which cast to compare with this cast. @param {PanelSender} send @param {Parameters<typeof openMenu>[0]} at */
export async function chooseCast(send, at) {
  const { casts } = await send.ask("casts", {});
  const entries = casts.map((/** @type {[string, string]} */ [cast, label]) => ({ words: label, act: () => send("compare", { cast }) }));
  openMenu(at, entries.length ? entries : [{ words: "There is no other cast yet. Fork starts one from the selected step, with your changes." }], { label: "compare with", searchable: entries.length > 8 });
}

/**
 * Open the menu of a step.
 * @param {PanelSender} send @param {Parameters<typeof openMenu>[0]} at @param {number} row of the timeline @param {number|null} selectedRow the selected row
 * @param {(row: number) => string} called the label of the step in a row @param {MenuEntry[]} repetitions entries that repeat the cast from the step
 */
export function stepMenu(send, at, row, selectedRow, called, repetitions) {
  const steps = [{ words: `Compare step ${called(row)} with the last visit of its socket`, act: () => send("compare", { row }) }];
  if (selectedRow && selectedRow !== row) steps.push({ words: `Compare it with step ${called(selectedRow)}`, act: () => send("compare", { row, other: selectedRow }) });
  openMenu(at, [...repetitions, ...steps, { words: "Compare the cast with …", act: () => chooseCast(send, at) }], { label: `step ${called(row)}` });
}

/** Run the action chosen in the menu of a socket on the graph. @param {PanelSender} send @param {Shell} shell @param {{act: "where"|"compare"|"run_to", id: string}} chosen */
export function actOnSocket(send, shell, { act, id: socket }) {
  if (act === "where") askWhere(send, shell, { kind: "before", socket });
  else send(act, { socket });
}
