/** The parts of a cast's panel with code of their own, by the kernel's name for each. Every other part of the dock is made of blocks. */
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
