/** The state of a canvas except for drawing: unconfirmed local changes, and the actions on an element. */

/**
 * Return the local flags that stay pending after an update from the kernel: an answer to an earlier action does
 * not undo a later one, and elements that are no longer drawn are dropped.
 * @param {Partial<Flags>} pending
 * @param {Flags} fromKernel
 * @param {(id: string) => boolean} isDrawn
 * @returns {Partial<Flags>}
 */
export function stillPending(pending, fromKernel, isDrawn) {
  const ids = (/** @type {unknown} */ value) => /** @type {string[]} */ ([value ?? []].flat()).sort();
  const waits = (/** @type {keyof Flags} */ name) => String(ids(pending[name])) !== String(ids(fromKernel[name])) && ids(pending[name]).every(isDrawn);
  return Object.fromEntries(Object.entries(pending).filter(([name]) => waits(/** @type {keyof Flags} */ (name))));
}

/**
 * @typedef {"connect"|"open"|"lead"|"break"|"breakAfter"|"breakWhere"|"compare"|"runTo"|"fold"|"delete"|"copy"|"centre"} Act
 * @typedef {{mode?: string, connecting: boolean, follows?: boolean, stops: boolean, folded: boolean}} Situation
 *   `connecting`: the user is drawing an edge; `follows`: the graph shows a cast; `stops`: the element has a breakpoint; `folded`: it is a folded loop
 */

/** Return the menu entries of an element. @param {string} kind @param {Situation} situation @returns {[words: string, act: Act][]} */
export function choices(kind, { mode, connecting, follows, stops, folded }) {
  const socket = kind === "socket", loop = kind === "loop", designs = mode === "design", casts = follows && !designs && !loop;
  /** @type {([string, Act]|false|undefined)[]} */
  const all = [
    connecting && socket && ["Connect to this", "connect"],
    ["Open in inspector", "open"],
    designs && socket && ["Connect from here…", "lead"],
    casts && [stops ? "Remove the breakpoint" : socket ? "Breakpoint here" : "Stop when taken", "break"],
    casts && socket && !stops && ["Stop after it", "breakAfter"],
    casts && socket && ["Breakpoint, only when…", "breakWhere"],
    casts && socket && ["Run to here", "runTo"],
    casts && socket && ["Compare with its last visit", "compare"],
    loop && [folded ? "Unfold the loop" : "Fold the loop", "fold"],
    designs && ["Delete", "delete"],
    ["Copy id", "copy"],
    socket && ["Centre it", "centre"],
  ];
  return all.filter((choice) => choice !== false && choice !== undefined);
}

/** Return the index of the nearest point in a direction, or -1; points straight ahead come before points at an angle. @param {Point} from @param {Size} direction @param {Point[]} points */
export function nearest(from, [dx, dy], points) {
  let best = -1, lowestCost = Infinity;
  points.forEach((point, index) => {
    const x = point.x - from.x, y = point.y - from.y, along = x * dx + y * dy, offset = Math.abs(x * dy - y * dx), cost = along + 2.2 * offset;
    if (along >= 4 && offset <= 2.5 * along && cost < lowestCost) [best, lowestCost] = [index, cost];
  });
  return best;
}
