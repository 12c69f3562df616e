/** The parts of a cast's panel that have their own code, by the name that the kernel uses. All other parts of the dock consist of blocks. */
import { barPart } from "./bar.js";
import { inspectorPart } from "./inspector.js";
import { timelinePart } from "./timeline.js";
import { itemsPart } from "./items.js";
import { watchPart } from "./watch.js";

/** Each part receives the element to fill and the function that sends messages; parts of the dock also receive the element for their controls. */
export const BODIES = {
  bar: barPart,
  inspector: inspectorPart,
  timeline: timelinePart,
  items: itemsPart,
  watch: watchPart,
};
