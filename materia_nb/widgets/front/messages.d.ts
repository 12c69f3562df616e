// Made from the signatures of the messages in materia_nb/widgets by `python scripts/make_docs.py`: change them, not this file.

/** Sends a message of one kind, with its fields; they may be left out where none is needed. */
export type Send<Messages> = <Kind extends keyof Messages & string>(
  kind: Kind,
  ...fields: {} extends Messages[Kind] ? [fields?: Messages[Kind]] : [fields: Messages[Kind]]
) => void;

/** Messages to the panel of a cast. */
export interface ToCast {
  /** Run one socket. */
  step: { first?: Array<Record<string, unknown>> };
  /** Run until the cast stops. */
  run: { first?: Array<Record<string, unknown>> };
  /** Run until a socket is the next to run; with ``end``, run to the end of the cast. */
  run_to: { first?: Array<Record<string, unknown>>; socket: string };
  /** Run to the end of the current work item. */
  run_item: { first?: Array<Record<string, unknown>> };
  /** Run the failed socket again. */
  retry: { first?: Array<Record<string, unknown>> };
  /** Repeat the turn that failed. */
  retry_turn: { first?: Array<Record<string, unknown>> };
  /** Extend the exceeded limit once, and continue the cast. */
  retry_limit: { first?: Array<Record<string, unknown>> };
  /** Undo the answer that led to an exceeded limit, and ask for a new answer. */
  ask_again: { first?: Array<Record<string, unknown>>; discard_edits?: boolean };
  /** Apply the workbench's changes to the materia of the failed socket, and run the socket again. */
  apply_changes: { first?: Array<Record<string, unknown>> };
  /** Allow access to the folders outside the project that the cast requested, and run the socket again. */
  allow_folder: { first?: Array<Record<string, unknown>> };
  /** Pin a text as the answer of the failed socket, and continue. */
  pin_text: { first?: Array<Record<string, unknown>>; socket: string; text: string };
  /** Answer instead of the agent or process that failed. */
  by_hand: { text: string };
  /** Skip the socket that failed, or its whole work item, and continue; the note is the reason. */
  skip: { note: string; item?: boolean };
  /** Set the maximum tokens or cost of the cast; an empty text removes the budget. */
  budget: { budget: string };
  /** Change the budget that stopped the cast, and continue. */
  raise_budget: { first?: Array<Record<string, unknown>>; budget: string };
  /** Stop the run immediately if the running step can be interrupted, otherwise after the step. */
  pause: {};
  /** Continue without waiting for a function that does not return. */
  leave: {};
  /** Abort the cast after the running step. */
  abort: {};
  /** Set a breakpoint, or remove it. */
  break: { breakpoint: unknown };
  /** Make a breakpoint stop only at its n-th hit or under a condition; an empty text removes the restriction. */
  break_where: { breakpoint: unknown; text: string };
  /** Remove all breakpoints. */
  clear_breaks: {};
  /** Add or remove a breakpoint on changes of the value at a path of the state. */
  watch: { path: string };
  /** Show or hide the value at a path of the state, and its changes, in the Watch tab. */
  follow: { path: string; on?: boolean };
  /** Show a part in the inspector; null shows the current position of the cast. */
  select: { element: { kind: string; id: string } | null };
  /** Open a tab of the inspector. */
  tab: { tab: string };
  /** Open a tab of the dock. */
  dock: { dock: string };
  /** Show the cast as it was after a step of the cast or of a lane. */
  look: { step: number; lane?: string };
  /** Show the cast as it was after the step in a timeline row, counted from 1; row 0 shows the start. */
  row: { row: number };
  /** Show the current state of the cast instead of a past moment. */
  now: {};
  /** Show the steps of an abandoned branch; null shows the steps of the current branch. */
  line: { line: number | null };
  /** Show a lane in the inspector, where its questions can be answered; an empty name shows the cast itself. */
  lane: { lane: string };
  /** Change the height of the surface, in pixels. */
  height: { by: number };
  /** Close the notice above the graph. */
  dismiss: {};
  /** Show the original cast, or a fork of it. */
  show_cast: { cast: number };
  /** Switch between the cast and the designer. */
  mode: { mode: "cast" | "design" };
  /** Answer instead of the agent. */
  reply: { text: string };
  /** Answer *satisfied* or *not satisfied*, with a reason. */
  verdict: { satisfied: boolean; reason: string };
  /** Answer a generator with a table of work items. */
  items_answer: { rows: Array<[string | null, string | null, (number | null)?, (boolean | null)?]>; reason: string; satisfied?: boolean | null };
  /** Ask the agent to revise its draft. */
  refine: { first?: Array<Record<string, unknown>>; text: string };
  /** Accept the draft, and ask for the final result. */
  finalize: { first?: Array<Record<string, unknown>> };
  /** Answer the question of the agent that holds the cast. */
  answer: { first?: Array<Record<string, unknown>>; text: string };
  /** Decide instead of the agent that holds the cast: set the verdict, or choose the next socket. */
  decide: { satisfied?: boolean | null; target?: string | null };
  /** Approve the waiting tool calls; with ``always``, also approve later calls of the same tools. */
  allow: { first?: Array<Record<string, unknown>>; always?: boolean };
  /** Deny the tool calls that wait for approval. */
  deny: { first?: Array<Record<string, unknown>>; reason: string };
  /** Stop approving the calls of a tool automatically. */
  disallow: { tool: string };
  /** Enter the next socket without running it. */
  enter: {};
  /** Change layers of the prompt, for this turn only. */
  edit_prompt: { layers: Record<string, string> };
  /** Correct the output of the last step, and choose the next socket again. */
  edit_output: { text: string; discard_edits?: boolean };
  /** Set a value of the state; the text is parsed as JSON unless ``as_text`` is true. */
  set_value: { path: string; text: string; as_text?: boolean };
  /** Remove a value from the state. */
  remove_value: { path: string };
  /** Replace the list of work items; ``base`` is the digest of the list from which the rows were read. */
  items: { rows: Array<[string | null, string | null, (number | null)?, (boolean | null)?]>; base?: string | null; abandon?: boolean };
  /** Revert the last edit. */
  undo: {};
  /** Go back to the state after an earlier step; ``files`` also restores the project files from that time. */
  back: { step: number; files?: boolean; discard_edits?: boolean };
  /** Start another cast from a step, or from the current state of the cast. */
  fork: { step?: number | null };
  /** Start the same cast again, from the beginning. */
  again: {};
  /** Compare two steps, or two casts. */
  compare: { socket?: string | null; row?: number | null; other?: number | null; cast?: string | null };
  /** Save the cast as a web page. */
  page: {};
  /** Save the cast as a test of its loadout, in the project. */
  keep_test: {};
  /** Set the name of the cast. */
  label: { text: string };
  /** Pin the last answer of a socket, or unpin it. */
  pin: { socket: string };
  /** Return the timeline rows from ``first`` to ``last``. */
  rows: { token: string; first: number; last: number };
  /** Return the numbers of the rows of the timeline whose steps contain a text. */
  find: { token: string; text: string };
  /** Return the id and a description of each cast that this cast can be compared with. */
  casts: { token: string };
  /** Check a typed text as an answer, a correction or a value of the state; return the problems found. */
  check: { token: string; purpose: "reply" | "by_hand" | "correction" | "value"; text: string };
  /** Return the problems of an edited list of work items, and the effects of applying the list. */
  check_items: { token: string; rows: Array<[string | null, string | null, (number | null)?, (boolean | null)?]>; base?: string | null; abandon?: boolean };
  /** Return the whole title and context of a work item; ``base`` is the digest of its list. */
  item_texts: { token: string; base: string; index: number };
  /** Return the complete last output, for correction in the page. */
  last_output: { token: string };
  /** Return the complete value at a path of the state. */
  value: { token: string; path: Array<string> };
  /** Return the changes of the state from the end of one step to the end of another step. */
  diff: { token: string; a: number; b: number };
}

/** Messages to the panel of all casts. */
export interface ToCasts {
  /** Filter the list by text and status, and sort it by a column. */
  look: { text?: string; only?: "all" | "waits" | "failed" | "tagged"; by?: "state" | "request" | "loadout" | "when" | "steps" | "cost"; down?: boolean };
  /** Read the list of casts again. */
  refresh: {};
  /** Select a cast, by its id. */
  select: { cast: string };
  /** Show a cast below the list, read-only. */
  open: { cast: string };
  /** Show a cast below the list, to continue it. */
  resume: { cast: string };
  /** Fork a cast at its current state, and show the fork below the list. */
  fork: { cast: string };
  /** Show the differences between two casts below the list. */
  compare: { a: string; b: string; identities: [string, string] };
  /** Set the name and tags of a cast from one text; words that begin with ``#`` become tags. */
  label: { cast: string; text: string };
  /** Delete a cast; the page has asked for confirmation. */
  delete: { cast: string };
  /** Close the cast or comparison below the list. */
  shut: {};
  /** Close the notice above the list. */
  dismiss: {};
  /** Return the rows from ``first`` to ``last``, in the sort order with the number ``order``. */
  rows: { token: string; order: number; first: number; last: number };
}

/** Messages to the picture of a graph. */
export interface ToCanvas {
  /** Select a part. */
  pick: { element: string };
  /** Report the width and height of the canvas, in pixels. */
  room: { w: number; h: number };
  /** Switch the direction of the flow between right and down. */
  turn: {};
  /** Fold a loop into one card, or unfold it. */
  fold: { element: string };
  /** Return the picture as SVG. */
  svg: { token: string; theme: "light" | "dark" };
  /** Report a click on the background. */
  ground: {};
  /** Open a part in the inspector. */
  open: { element: string };
  /** Set or remove a breakpoint at a part; with ``after``, the cast stops after the socket. */
  break: { element: string; after?: boolean };
  /** Draw an edge. */
  connect: { from: string; to: string };
  /** Change the condition of an edge or an exit. */
  when: { of: string; when: "always" | "satisfied" | "not_satisfied" | "failed" };
  /** Move an edge or an exit up or down by one. */
  order: { of: string; by: -1 | 1 };
  /** Move the centre of a socket to a point in the picture, in pixels. */
  move: { id: string; x: number; y: number };
  /** Mark sockets. */
  marquee: { ids: Array<string> };
  /** Remove the marked sockets, or a part. */
  delete: { ids?: Array<string>; of?: string };
  /** Place a materia. */
  add: { materia: string; x: number; y: number };
  /** Revert the last change of the design. */
  undo: {};
  /** Apply the last reverted change again. */
  redo: {};
  /** Copy sockets to the clipboard. */
  copy: { ids?: Array<string> };
  /** Copy sockets and remove them. */
  cut: { ids?: Array<string> };
  /** Insert the copied sockets. */
  paste: {};
  /** Insert a copy of sockets. */
  duplicate: { ids?: Array<string> };
}

/** Messages to the picture of a question. */
export interface ToQuestion {
  /** Submit the guess that the step with this number leads to this socket. */
  guess: { target: string; number: number };
}

/** Messages to the designer of a loadout. */
export interface ToDesign {
  /** Place a materia in a new socket; if the materia does not exist, offer to create it. */
  add: { materia: string; x?: number | null; y?: number | null; positions?: Record<string, [number, number]> | null; source?: string | null };
  /** Add an edge from a socket to another socket or to the end */
  add_edge: { source: string; to: string; when?: string; index?: unknown; max_traversals?: unknown };
  /** Add an exit to a loop, which is taken when the list of the loop is exhausted */
  add_exit: { loop: string; source: string; condition: string; target: string; id?: string | null };
  /** Add a socket without edges for a materia. The first socket of a loadout becomes its entry */
  add_socket: { materia: string; id?: string | null };
  /** Answer the open question with the choice at index ``number``; any other number dismisses the question. */
  answer: { number?: number; question?: number | null };
  /** Start a cast of the current design. */
  cast: { design: string; request: string };
  /** Change the condition or the target of an edge; None leaves a value unchanged */
  change_edge: { source: string; index: unknown; when?: string | null; to?: string | null };
  /** Change an exit; None leaves a value unchanged */
  change_exit: { loop: string; index: unknown; source?: string | null; condition?: string | null; target?: string | null; id?: string | null };
  /** Add an edge between two sockets, or an exit if it leaves a loop over a list and no condition is given. */
  connect: { from: string; to: string; when?: string | null; max_traversals?: unknown };
  /** Copy the chosen sockets. */
  copy: {};
  /** Copy the chosen sockets, and remove them. */
  cut: {};
  /** Remove a part, or the marked or selected parts. */
  delete: { of?: unknown };
  /** Delete a loop and its exits; its sockets and their edges stay */
  delete_loop: { id: string };
  /** Continue with a draft, or discard it. */
  draft: { file: string; discard?: boolean };
  /** Insert a copy of the chosen sockets without changing the clipboard. */
  duplicate: {};
  /** Turn an edge into an exit, which is taken only when the list of the loop is exhausted */
  edge_to_exit: { socket: string; index: unknown; loop: string };
  /** Set the entry socket of the loadout. */
  entry: { id: string };
  /** Estimate the turns, tokens and cost of a cast, for the line next to the request. */
  estimate: {};
  /** Add an exit to a loop. */
  exit: { loop: string; from: string; when: string; to: string };
  /** Turn an exit into an edge, which is taken after any item */
  exit_to_edge: { loop: string; index: unknown };
  /** Explore all possible runs of the design. */
  explore: {};
  /** Fix a finding of the report. */
  fix: { code: string; source: string };
  /** Discard a refused value. */
  forget: { of: [string, string]; field: string };
  /** Set the maximum number of traversals of an edge (R18); None removes the limit */
  limit_edge: { source: string; index: unknown; max_traversals: unknown };
  /** Create a loop of sockets over the work items of the generator whose edge enters the loop. */
  loop: { ids?: Array<string> | null; exits?: boolean | null };
  /** Define a materia, then repeat the message that needed it. */
  make: { id: string; type: string; then?: Record<string, unknown> | null };
  /** Create a loop region from sockets */
  make_loop: { sockets: unknown; id?: string | null; consumes?: unknown; iterator?: unknown };
  /** Define a new ``agent`` or ``utility`` from a template */
  make_materia: { id: string; kind: string };
  /** Mark a socket, or remove its mark. */
  mark: { id: string };
  /** Mark the sockets inside the frame that the user has drawn. */
  marquee: { ids: Array<string> };
  /** Set the members of a loop, or make the marked sockets its members. */
  members: { loop: string; ids?: Array<string> | null };
  /** Move a socket to a column and a row; ``positions`` fixes the positions of the other sockets. */
  move: { id: string; x: number; y: number; positions?: Record<string, [number, number]> | null };
  /** Move an edge to another position in its socket */
  move_edge: { source: string; index: unknown; to: unknown };
  /** Move an exit to another position */
  move_exit: { loop: string; index: unknown; to: unknown };
  /** Offer a draft that a coding agent has handed over since the design was opened. */
  news: {};
  /** Move an edge or an exit up or down by one. */
  order: { of: unknown; by: -1 | 1 };
  /** Insert the copied sockets. */
  paste: {};
  /** Select a part; ``add`` adds a socket to the marked sockets, and ``keep`` leaves the marks unchanged. */
  pick: { part?: unknown; add?: boolean; keep?: boolean };
  /** Set the position of a socket in the drawing, as column and row, or remove it with None */
  place_socket: { id: string; position: unknown };
  /** Set the positions of several sockets, as one step */
  place_sockets: { positions: unknown };
  /** Apply the last undone step again. */
  redo: {};
  /** Reload the design from disk. */
  reload: {};
  /** Remove an edge, even a malformed edge */
  remove_edge: { source: string; index: unknown };
  /** Remove an exit, even a malformed exit */
  remove_exit: { loop: string; index: unknown };
  /** Remove a socket with its edges, its membership in loops, and the edges and exits that refer to it */
  remove_socket: { id: string };
  /** Remove several sockets at once */
  remove_sockets: { ids: unknown };
  /** Rename a loop */
  rename_loop: { old: string; new: string };
  /** Rename a socket, and change every reference to it in the entry, edges, loops, exits and layout */
  rename_socket: { old: string; new: string };
  /** Save the design to its current file or to another file; ask first if the save would overwrite other changes. */
  save: { to?: string | null; anyway?: boolean };
  /** Set one field of a part; a refused value stays in its field, with the reason. */
  set: { of: [string, string]; field: string; value?: unknown };
  /** Set the socket where a cast starts */
  set_entry: { id: string };
  /** Set ``description``, ``label``, ``handoff`` or ``castContext`` of the loadout, or remove it with None */
  set_loadout: { field: string; value: unknown };
  /** Set ``label`` of a loop, or remove ``label`` or ``exit``, the older form of exits, with None */
  set_loop: { id: string; field: string; value: unknown };
  /** Set a field of a materia, or remove it with None; the change affects every loadout that places the materia */
  set_materia: { id: string; field: string; value: unknown };
  /** Set the members of a loop, and remove the exits of sockets that are no longer members */
  set_members: { id: string; sockets: unknown };
  /** Set a field of a socket, or remove it with None */
  set_socket: { id: string; field: string; value: unknown };
  /** Set the list that a loop processes. Omitted fields keep their values; the other kind of source is removed */
  set_source: { id: string; source: unknown; from?: unknown; items?: unknown; output?: unknown; as?: unknown; cursor?: unknown };
  /** Set the source of a loop: the work items of the likely generator, a list, or no source. */
  source: { loop: string; source?: string | null };
  /** Move every card to the position that the layout computes. */
  tidy: {};
  /** Convert an edge to an exit, or an exit to an edge. */
  turn: { of: unknown };
  /** Undo the last step. */
  undo: {};
  /** Set the condition of an edge or an exit. */
  when: { of: unknown; when: string };
  /** Show the shortest path to an outcome on the canvas. */
  witness: { outcome: string };
}
