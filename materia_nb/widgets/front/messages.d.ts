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
  /** Run until the work item that is worked on is over, and another one or none begins. */
  run_item: { first?: Array<Record<string, unknown>> };
  /** Run the socket where the cast stopped once more. */
  recast: { first?: Array<Record<string, unknown>> };
  /** Ask the turn that failed once more. */
  resend: { first?: Array<Record<string, unknown>> };
  /** Go on, with the limit that stopped the cast granted once more. */
  revive: { first?: Array<Record<string, unknown>> };
  /** Go back before the last answer of the socket behind which a limit stopped the cast, and ask it again. */
  ask_again: { first?: Array<Record<string, unknown>>; discard_edits?: boolean };
  /** Take what the workbench has changed of the materia where the cast failed, and run it once more. */
  take: { first?: Array<Record<string, unknown>> };
  /** Let the cast work in the directories outside the project that it asks for, and run what asked once more. */
  allow_folder: { first?: Array<Record<string, unknown>> };
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
  /** Set a breakpoint or take it away. */
  break: { breakpoint: unknown };
  /** Have a breakpoint only the n-th time, where the text is a number, or only where it holds; every time without one. */
  break_where: { breakpoint: unknown; text: string };
  /** Take all breakpoints away. */
  clear_breaks: {};
  /** Stop when what stands at a path of the state changes, or no longer. */
  watch: { path: string };
  /** Show what stands at a path of the state, and how it changed, in the tab Watch; or no longer. */
  follow: { path: string; on?: boolean };
  /** Let the inspector tell about an element; about wherever the cast is without one. */
  select: { element: { kind: string; id: string } | null };
  /** Open a tab of the inspector. */
  tab: { tab: string };
  /** Open a tab of the dock. */
  dock: { dock: string };
  /** Show everything as it was after a step, of the cast itself or of a lane. */
  look: { step: number; lane?: string };
  /** Show everything as it was after the step of a row of the timeline, counted from 1; 0 is the start. */
  row: { row: number };
  /** Go back to the present. */
  now: {};
  /** Show the steps of an abandoned branch, or the present ones again. */
  line: { line: number | null };
  /** Let the inspector tell about a lane, and answer what is asked there; about the cast itself without a name. */
  lane: { lane: string };
  /** Make the surface higher or lower. */
  height: { by: number };
  /** Take the line over the graph away. */
  heard: {};
  /** Answer in the place of the agent. */
  reply: { text: string };
  /** Answer by one of two buttons. */
  verdict: { satisfied: boolean; reason: string };
  /** Answer a generator by a table of items. */
  items_answer: { rows: Array<[string | null, string | null, (number | null)?, (boolean | null)?]>; reason: string; satisfied?: boolean | null };
  /** Ask for a changed draft. */
  refine: { first?: Array<Record<string, unknown>>; text: string };
  /** Accept the draft and ask for the final result. */
  finalize: { first?: Array<Record<string, unknown>> };
  /** Answer the agent that holds the cast. */
  answer: { first?: Array<Record<string, unknown>>; text: string };
  /** Decide in the place of the agent that holds the cast: by a verdict, or where to go on. */
  decide: { satisfied?: boolean | null; target?: string | null };
  /** Allow what is asked for; with ``always`` later calls of the same tools as well. */
  allow: { first?: Array<Record<string, unknown>>; always?: boolean };
  /** Refuse what is asked for. */
  deny: { first?: Array<Record<string, unknown>>; reason: string };
  /** Let a tool ask again. */
  disallow: { tool: string };
  /** Enter the next socket without running it. */
  enter: {};
  /** Change layers of the prompt, for this turn only. */
  edit_prompt: { layers: Record<string, string> };
  /** Decide the last step again with another output. */
  recommit: { text: string; discard_edits?: boolean };
  /** Put a value into the state, read as JSON unless it is text. */
  set_value: { path: string; text: string; as_text?: boolean };
  /** Take a value out of the state. */
  remove_value: { path: string };
  /** Put a list of work items into the cast; ``base`` names the list that it was made from. */
  items: { rows: Array<[string | null, string | null, (number | null)?, (boolean | null)?]>; base?: string | null; abandon?: boolean };
  /** Take the last edit back. */
  undo: {};
  /** Go on from the state after an earlier step, with the files of then if asked. */
  back: { step: number; files?: boolean; discard_edits?: boolean };
  /** Begin another cast from a step, or from how the cast stands. */
  fork: { step?: number | null };
  /** Begin the same cast anew, from its beginning. */
  again: {};
  /** Show how the step of a row of the timeline differs from that of another, or from the visit of its socket before it. */
  compare: { socket?: string | null; row?: number | null; other?: number | null; cast?: string | null };
  /** Save the cast as one HTML page. */
  page: {};
  /** Keep the cast as a test of its loadout, in the project. */
  keep_test: {};
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
  /** Give the rows of the timeline whose steps hold a text. */
  find: { token: string; text: string };
  /** Give the casts that this one can be compared with: of each what names it, and words. */
  casts: { token: string };
  /** Say what is wrong with what was typed: as an answer, a correction, or a value of the state. */
  check: { token: string; what: "reply" | "by_hand" | "correction" | "value"; text: string };
  /** Say what is wrong with a list of work items, and what applying it would move. */
  check_items: { token: string; rows: Array<[string | null, string | null, (number | null)?, (boolean | null)?]>; base?: string | null; abandon?: boolean };
  /** Give title and context of a work item whole; ``base`` names the list that it is in. */
  item_texts: { token: string; base: string; place: number };
  /** Give the last output whole, to be corrected. */
  last_output: { token: string };
  /** Give a value of the state whole. */
  value: { token: string; path: Array<string> };
  /** Say what changed in the state from the end of one step to that of another. */
  diff: { token: string; a: number; b: number };
}

/** What the panel of all casts is told. */
export interface ToCasts {
  /** Show the casts that hold these words and stand so, in this order. */
  look: { words?: string; only?: "all" | "waits" | "failed" | "tagged"; by?: "state" | "request" | "loadout" | "when" | "steps" | "cost"; down?: boolean };
  /** Look again which casts there are. */
  refresh: {};
  /** Mark a cast, by its id. */
  select: { cast: string };
  /** Show a cast below the list, to be looked at. */
  open: { cast: string };
  /** Show a cast below the list, to go on with it. */
  resume: { cast: string };
  /** Start another cast from where a cast is now, and show it below the list. */
  fork: { cast: string };
  /** Show how two casts differ, below the list. */
  compare: { a: string; b: string };
  /** Call a cast by a name, and give it tags: words that begin with ``#``. */
  label: { cast: string; text: string };
  /** Delete a cast; the page has asked whether it is meant. */
  delete: { cast: string };
  /** Show nothing below the list any more. */
  shut: {};
  /** Take the line over the list away. */
  heard: {};
  /** Give rows of the list as it was in the order named ``order``. */
  rows: { token: string; order: number; first: number; last: number };
}

/** What the picture of a graph is told; elements of the canvas are read as what they stand for. */
export interface ToCanvas {
  /** Select a part. */
  pick: { element: string };
  /** The canvas is so wide and high. */
  room: { w: number; h: number };
  /** Let the flow run the other way. */
  turn: {};
  /** Draw a loop as one card, or again as a region. */
  fold: { element: string };
  /** Give the picture as SVG. */
  svg: { theme: "light" | "dark"; token: string };
  /** A click beside everything. */
  ground: {};
  /** Open a part in the inspector. */
  open: { what: string };
  /** Set a breakpoint at a part or take it away; ``after`` means behind a socket. */
  break: { what: string; after?: boolean };
  /** Draw an edge. */
  connect: { from: string; to: string };
  /** Say what an edge or an exit waits for. */
  when: { of: string; when: "always" | "satisfied" | "not_satisfied" | "failed" };
  /** Look at an edge or an exit earlier or later by one. */
  order: { of: string; by: -1 | 1 };
  /** Put a socket somewhere: its centre in pixels of the picture. */
  move: { id: string; x: number; y: number };
  /** Mark sockets. */
  marquee: { ids: Array<string> };
  /** Take away the marked sockets, or a part. */
  delete: { ids?: Array<string>; what?: string };
  /** Place a materia. */
  drop: { materia: string; x: number; y: number };
  /** Take the last change of the design back. */
  undo: {};
  /** Make it again. */
  redo: {};
  /** Keep sockets, to be pasted. */
  copy: { ids?: Array<string> };
  /** Keep sockets and take them away. */
  cut: { ids?: Array<string> };
  /** Place what was kept. */
  paste: {};
  /** Place sockets once more. */
  duplicate: { ids?: Array<string> };
}

/** What the picture of a question is told. */
export interface ToQuestion {
  /** The next step leads to this place. */
  guess: { place: string };
}

/** What the designer of a loadout is told. */
export interface ToDesign {
  /** Place a materia in a new socket, or ask what is meant by one that is not there. */
  add: { materia: string; x?: unknown; y?: unknown; places?: unknown; source?: unknown };
  /** Connect two sockets, or a socket with the end */
  add_edge: { source: string; to: string; when?: string; place?: unknown; max_traversals?: unknown };
  /** Add a way out of a loop, taken once its list is exhausted */
  add_exit: { loop: string; source: string; condition: string; target: string; id?: string | null };
  /** Place a materia in a new socket without edges. The first socket of a loadout becomes its entry */
  add_socket: { materia: string; id?: string | null };
  /** Choose one of the answers to the question; another number is none of them. A question that is named must be the current one. */
  answer: { number?: unknown; question?: unknown };
  /** Cast the design as it is now. */
  cast: { request: string };
  /** Change condition or target of an edge; what is None stays, and so do its other fields */
  change_edge: { source: string; place: unknown; when?: string | null; to?: string | null };
  /** Change an exit route; what is None stays, its id too, which is a stable name */
  change_exit: { loop: string; place: unknown; source?: string | null; condition?: string | null; target?: string | null; id?: string | null };
  /** Lead an edge from a socket to another one; out of a loop with a list, without more said, an exit. */
  connect: { from: string; to: string; when?: string | null; most?: unknown };
  /** Copy what is chosen. */
  copy: {};
  /** Copy what is chosen, and remove it. */
  cut: {};
  /** Remove a part; without one, what is marked or selected. */
  delete: { what?: unknown; of?: unknown };
  /** Delete a loop and its exits; its sockets and their edges stay */
  delete_loop: { id: string };
  /** Go on with a draft, or throw it away. */
  draft: { file?: unknown; discard?: boolean };
  /** Place a materia in a new socket, or ask what is meant by one that is not there. */
  drop: { materia: string; x?: unknown; y?: unknown; places?: unknown; source?: unknown };
  /** Copy what is chosen, and put it in at once; what was copied before stays. */
  duplicate: {};
  /** Make an exit route of an edge: out of the loop once its list is done, and not before */
  edge_to_exit: { socket: string; place: unknown; loop: string };
  /** Let casts start at a socket. */
  entry: { id: string };
  /** Estimate what a cast of the design would take; said where a cast is asked for. */
  estimate: {};
  /** Add an exit to a loop. */
  exit: { loop: string; from: string; when: string; to: string };
  /** Make a plain edge of an exit route: it leaves the loop at any item */
  exit_to_edge: { loop: string; place: unknown };
  /** Look at everything that can happen. */
  explore: {};
  /** Fix a finding of the report. */
  fix: { code: unknown; source: unknown };
  /** Let go of what was typed and refused. */
  forget: { of?: unknown; field?: unknown };
  /** Keep the step of a draft that was done last, or take it back, and go on to the next, or decide all that follow alike. */
  judge: { file: unknown; at: unknown; kept: unknown; verdict: string };
  /** Say how often an edge may be taken (R18); None takes the limit away */
  limit_edge: { source: string; place: unknown; max_traversals: unknown };
  /** Make a loop of sockets, over the items of the generator that leads into it. */
  loop: { ids?: unknown; exits?: unknown };
  /** Define a materia, and then do what needed it. */
  make: { id: string; what: string; then?: unknown };
  /** Make a loop region of sockets */
  make_loop: { sockets: unknown; id?: string | null; consumes?: unknown; iterator?: unknown };
  /** Define a new ``agent`` or ``utility``, to be filled in */
  make_materia: { id: string; kind: string };
  /** Mark a socket, or mark it no more. */
  mark: { id: string };
  /** Mark the sockets in a frame. */
  marquee: { ids: string[] };
  /** Choose the members of a loop; without any, those that are marked. */
  members: { loop: string; ids?: unknown };
  /** Put sockets somewhere: each at a column and a row. */
  move: { id?: unknown; x?: unknown; y?: unknown; places?: unknown };
  /** Put an edge at another place among those of its socket */
  move_edge: { source: string; place: unknown; to: unknown };
  /** Put an exit route at another place */
  move_exit: { loop: string; place: unknown; to: unknown };
  /** Ask about a draft that a coding agent has handed over since the design was opened. */
  news: {};
  /** Move an edge or an exit up or down by one. */
  order: { of: unknown; by: unknown };
  /** Put in what was copied. */
  paste: {};
  /** Select a part; ``add`` marks a socket beside others, ``keep`` leaves the marks. */
  pick: { what?: unknown; add?: boolean; keep?: boolean };
  /** Say where a socket is drawn, as column and row in the loadout's layout; None takes that away */
  place_socket: { id: string; place: unknown };
  /** Say where several sockets are drawn, as one step */
  place_sockets: { places: unknown };
  /** Do the step again that was undone last. */
  redo: {};
  /** Take what is on disk now. */
  reload: {};
  /** Remove an edge, well formed or not */
  remove_edge: { source: string; place: unknown };
  /** Remove an exit route, well formed or not */
  remove_exit: { loop: string; place: unknown };
  /** Remove a socket with its edges, the edges to it, its place in loops and the exits from and to it */
  remove_socket: { id: string };
  /** Remove several sockets at once */
  remove_sockets: { ids: unknown };
  /** Spell a field of a socket as another one */
  rename_field: { id: string; old: string; new: string };
  /** Give a loop another name */
  rename_loop: { old: string; new: string };
  /** Give a socket another id and change every reference to it: entry, edges, loops, exits, layout */
  rename_socket: { old: string; new: string };
  /** Do the next step of an agent's draft that can be done, and ask whether to keep it; ``kept`` counts those that were. */
  review: { file?: unknown; at?: unknown; kept?: unknown };
  /** Save the design where it is kept, or elsewhere; ask first where something would be lost. */
  save: { to?: unknown; anyway?: boolean };
  /** Take the value of one field, whole, for the part that it was typed at; what is refused stays there. */
  set: { of: unknown; field: string; value?: unknown };
  /** Choose the socket where a cast starts */
  set_entry: { id: string };
  /** Set ``description``, ``label``, ``handoff`` or ``castContext`` of the loadout, or take it away with None */
  set_loadout: { field: string; value: unknown };
  /** Set ``label`` of a loop or take it away with None; ``exit``, the older form of exits, can only be taken away */
  set_loop: { id: string; field: string; value: unknown };
  /** Set a field of a materia, or take it away with None; every loadout that places it will have it so */
  set_materia: { id: string; field: string; value: unknown };
  /** Choose the members of a loop; the exits of a socket that is not a member any more go with it */
  set_members: { id: string; sockets: unknown };
  /** Set a field of a socket, or take it away with None */
  set_socket: { id: string; field: string; value: unknown };
  /** Say what a loop goes over; the other kind of source goes, and fields that are not given stay */
  set_source: { id: string; source: unknown; from?: unknown; items?: unknown; output?: unknown; as?: unknown; cursor?: unknown };
  /** Choose what a loop goes over: the work items of the likely generator, a list, or nothing. */
  source: { loop: string; source?: string | null };
  /** Let every card stand where the layout puts it. */
  tidy: {};
  /** Make an exit of an edge, or an edge of an exit. */
  turn: { of: unknown };
  /** Take the last step back. */
  undo: {};
  /** Say what an edge or an exit waits for. */
  when: { of: unknown; when: string };
  /** Show the shortest way to an end on the canvas. */
  witness: { what: string };
}
