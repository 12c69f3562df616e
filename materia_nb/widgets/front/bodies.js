/** The parts of a cast's panel that draw themselves, by the names that the kernel has for them. Any other part of the dock is made of blocks. */
import { barPart } from "./bar.js";
import { inspectorPart } from "./inspector.js";
import { timelinePart } from "./timeline.js";
import { itemsPart } from "./items.js";
import { watchPart } from "./watch.js";

/** Each is given the element that it fills, and what sends messages; a part of the dock also where its controls go. */
export const BODIES = {
  bar: barPart,
  inspector: inspectorPart,
  timeline: timelinePart,
  items: itemsPart,
  watch: watchPart,
};
