// Made from widgets/messages.py by `python scripts/make_docs.py`: change the types there, not this file.

/** Sends a message of one kind, with its fields; they may be left out where none is needed. */
export type Send<Messages> = <Kind extends keyof Messages & string>(
  kind: Kind,
  ...fields: {} extends Messages[Kind] ? [fields?: Messages[Kind]] : [fields: Messages[Kind]]
) => void;

/** What the panel of a cast is told. */
export interface ToCast {
  /** Run one socket. */
  step: { first?: Array<Record<string, unknown>> };
  /** Run until the cast stops. */
  run: { first?: Array<Record<string, unknown>> };
  /** Run until a socket comes next, or ``end``. */
  run_to: { first?: Array<Record<string, unknown>>; socket: string };
  /** Run the socket where the cast stopped once more. */
  recast: { first?: Array<Record<string, unknown>> };
  /** Ask the turn that failed once more. */
  resend: { first?: Array<Record<string, unknown>> };
  /** Go on, with the limit that stopped the cast granted once more. */
  revive: { first?: Array<Record<string, unknown>> };
  /** Take what the workbench has changed of the materia where the cast failed, and run it once more. */
  take: { first?: Array<Record<string, unknown>> };
  /** Answer in the place of what failed. */
  by_hand: { text: string };
  /** Let a text answer the socket where the cast failed, from now on, and go on. */
  pin_text: { first?: Array<Record<string, unknown>>; socket: string; text: string };
  /** Go on without the socket that failed, or without its whole work item; the note says why. */
  skip: { note: string; item?: boolean };
  /** Change the budget: tokens, a cost, or nothing for no maximum. */
  budget: { budget: string };
  /** Change the budget that stopped the cast, and go on. */
  raise_budget: { first?: Array<Record<string, unknown>>; budget: string };
  /** Stop what runs after its step, or within it where it can be. */
  pause: {};
  /** Go on without a function that does not return. */
  leave: {};
  /** End the cast. */
  abort: {};
  /** Set a breakpoint or take it away; of a part of the graph, whichever it has. */
  break: { breakpoint?: unknown; element?: { kind: string; id: string } | null; after?: boolean };
  /** Take all breakpoints away. */
  clear_breaks: {};
  /** Stop when what stands at a path of the state changes, or no longer. */
  watch: { path: string };
  /** Let the inspector tell about an element; about wherever the cast is without one. */
  select: { element: { kind: string; id: string } | null };
  /** Open a tab of the inspector. */
  tab: { tab: string };
  /** Open a tab of the dock. */
  dock: { dock: string };
  /** Show everything as it was after a step. */
  look: { step: number };
  /** Go back to the present. */
  now: {};
  /** Show the steps of an abandoned branch, or the present ones again. */
  line: { line: number | null };
  /** Make the surface higher or lower. */
  height: { by: number };
  /** Take the line over the graph away. */
  heard: {};
  /** Answer in the place of the agent. */
  reply: { text: string };
  /** Answer by one of two buttons. */
  verdict: { satisfied: boolean; reason: string };
  /** Answer a generator by a table of items. */
  items_answer: { rows: Array<[string, string, (number | null)?, (boolean | null)?]>; reason: string; satisfied?: boolean | null };
  /** Ask for a changed draft. */
  refine: { first?: Array<Record<string, unknown>>; text: string };
  /** Accept the draft and ask for the final result. */
  finalize: { first?: Array<Record<string, unknown>> };
  /** Answer the agent that holds the cast. */
  answer: { first?: Array<Record<string, unknown>>; text: string };
  /** Decide in the place of the agent that holds the cast: by a verdict, or where to go on. */
  decide: { seen: string; satisfied?: boolean | null; target?: string | null };
  /** Allow what is asked for; with ``always`` later calls of the same tools as well. */
  allow: { first?: Array<Record<string, unknown>>; seen: string; always?: boolean };
  /** Refuse what is asked for. */
  deny: { first?: Array<Record<string, unknown>>; seen: string; reason: string };
  /** Let a tool ask again. */
  disallow: { tool: string };
  /** Enter the next socket without running it. */
  enter: {};
  /** Change layers of the prompt, for this turn only. */
  edit_prompt: { layers: Record<string, string> };
  /** Decide the last step again with another output. */
  recommit: { text: string };
  /** Put a value into the state, read as JSON unless it is text. */
  set_value: { path: string; text: string; as_text?: boolean };
  /** Take a value out of the state. */
  remove_value: { path: string };
  /** Put a list of work items into the cast; ``base`` names the list that it was made from. */
  items: { rows: Array<[string, string, (number | null)?, (boolean | null)?]>; base?: string | null; abandon?: boolean };
  /** Take the last edit back. */
  undo: {};
  /** Go on from the state after an earlier step. */
  back: { step: number };
  /** Begin another cast from a step, or from how the cast stands. */
  fork: { step?: number | null };
  /** Write the cast as one HTML page. */
  page: {};
  /** Call the cast by a name. */
  label: { text: string };
  /** Show one of the casts of the panel. */
  show_cast: { cast: number };
  /** Let what a socket said last answer from now on, or no longer. */
  pin: { socket: string };
  /** Go on with the cast, or design its loadout. */
  mode: { mode: "cast" | "design" };
  /** Give rows of the timeline. */
  rows: { token: string; first: number; last: number };
  /** Give the numbers of the steps that hold a text. */
  find: { token: string; text: string };
  /** Say what is wrong with what was typed: as an answer, a correction, or a value of the state. */
  check: { token: string; what: "reply" | "by_hand" | "correction" | "value"; text: string };
  /** Say what is wrong with a list of work items, and what applying it would move. */
  check_items: { token: string; rows: Array<[string, string, (number | null)?, (boolean | null)?]>; base?: string | null; abandon?: boolean };
  /** Give a value of the state whole. */
  value: { token: string; path: Array<string> };
  /** Say what changed in the state from the end of one step to that of another. */
  diff: { token: string; a: number; b: number };
}
