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
  /** Run the cast until it stops. */
  run: { first?: Array<Record<string, unknown>> };
  /** Run the cast until the given socket is next; with ``end``, run to the end of the cast. */
  run_to: { first?: Array<Record<string, unknown>>; socket: string };
  /** Run the cast to the end of the current work item. */
  run_item: { first?: Array<Record<string, unknown>> };
  /** Run the failed socket again. */
  retry: { first?: Array<Record<string, unknown>> };
  /** Repeat the failed turn. */
  retry_turn: { first?: Array<Record<string, unknown>> };
  /** Extend the exceeded limit once, and continue the cast. */
  retry_limit: { first?: Array<Record<string, unknown>> };
  /** Undo the answer that exceeded a limit, and ask for a new answer. */
  ask_again: { first?: Array<Record<string, unknown>>; discard_edits?: boolean };
  /** Update the failed socket's materia to its changed definition in the workbench, and run the socket again. */
  apply_changes: { first?: Array<Record<string, unknown>> };
  /** Allow access to the folders outside the project that the cast requested, and run the failed socket again. */
  allow_folder: { first?: Array<Record<string, unknown>> };
  /** Pin the text as the answer of the failed socket, and continue the cast. */
  pin_text: { first?: Array<Record<string, unknown>>; socket: string; text: string };
  /** Answer in place of the agent or process that failed. */
  by_hand: { text: string };
  /** Skip the failed socket or its whole work item, and continue the cast; the note gives the reason. */
  skip: { note: string; item?: boolean };
  /** Set the token or cost budget of the cast; an empty string removes the budget. */
  budget: { budget: string };
  /** Replace the exhausted budget, and continue the cast. */
  raise_budget: { first?: Array<Record<string, unknown>>; budget: string };
  /** Stop the run: immediately if the running step can be interrupted, otherwise after the step. */
  pause: {};
  /** Continue the cast without waiting for a function that has not returned. */
  leave: {};
  /** Abort the cast when the running step has ended. */
  abort: {};
  /** Set a breakpoint, or remove it if it is set. */
  break: { breakpoint: unknown };
  /** Restrict a breakpoint to its n-th hit or to a condition; an empty string removes the restriction. */
  break_where: { breakpoint: unknown; text: string };
  /** Remove all breakpoints. */
  clear_breaks: {};
  /** Add or remove a breakpoint on changes to the value at a state path. */
  watch: { path: string };
  /** Show the value at a state path and its changes in the Watch tab, or hide them. */
  follow: { path: string; on?: boolean };
  /** Show an element in the inspector; null shows the current position of the cast. */
  select: { element: { kind: string; id: string } | null };
  /** Open a tab of the inspector. */
  tab: { tab: string };
  /** Open a tab of the dock. */
  dock: { dock: string };
  /** Show the cast as it was after a step of the cast or of a lane. */
  look: { step: number; lane?: string };
  /** Show the cast as it was after the step in a timeline row. Rows are counted from 1, and row 0 is the start. */
  row: { row: number };
  /** Return from a past step to the current state of the cast. */
  now: {};
  /** Show the steps of an abandoned branch; null shows the steps of the current branch. */
  line: { line: number | null };
  /** Show a lane in the inspector so that its questions can be answered; an empty name shows the cast itself. */
  lane: { lane: string };
  /** Change the height of the panel by a number of pixels. */
  height: { by: number };
  /** Close the notice above the graph. */
  dismiss: {};
  /** Show the original cast or a fork of it. */
  show_cast: { cast: number };
  /** Switch between the cast and the designer. */
  mode: { mode: "cast" | "design" };
  /** Answer the current question in place of the agent. */
  reply: { text: string };
  /** Answer *satisfied* or *not satisfied*, with a reason. */
  verdict: { satisfied: boolean; reason: string };
  /** Answer for a generator with a table of work items. */
  items_answer: { rows: Array<[string | null, string | null, (number | null)?, (boolean | null)?]>; reason: string; satisfied?: boolean | null };
  /** Ask the agent to revise its draft. */
  refine: { first?: Array<Record<string, unknown>>; text: string };
  /** Accept the draft, and request the final result. */
  finalize: { first?: Array<Record<string, unknown>> };
  /** Answer the question for which an agent has put the cast on hold. */
  answer: { first?: Array<Record<string, unknown>>; text: string };
  /** Decide for the agent that has put the cast on hold: set the verdict, or choose the next socket. */
  decide: { satisfied?: boolean | null; target?: string | null };
  /** Approve the pending tool calls; with ``always``, also approve later calls of the same tools. */
  allow: { first?: Array<Record<string, unknown>>; always?: boolean };
  /** Deny the pending tool calls. */
  deny: { first?: Array<Record<string, unknown>>; reason: string };
  /** Stop approving the calls of a tool automatically. */
  disallow: { tool: string };
  /** Enter the next socket without running it. */
  enter: {};
  /** Change layers of the prompt for this turn only. */
  edit_prompt: { layers: Record<string, string> };
  /** Correct the output of the last step, and choose the next socket again. */
  edit_output: { text: string; discard_edits?: boolean };
  /** Set a state value. The text is parsed as JSON unless ``as_text`` is true. */
  set_value: { path: string; text: string; as_text?: boolean };
  /** Remove a value from the state. */
  remove_value: { path: string };
  /** Replace the list of work items; ``base`` is the digest of the list that the user edited. */
  items: { rows: Array<[string | null, string | null, (number | null)?, (boolean | null)?]>; base?: string | null; abandon?: boolean };
  /** Revert the last edit. */
  undo: {};
  /** Go back to the state after an earlier step; with ``files``, also restore the project files of that step. */
  back: { step: number; files?: boolean; discard_edits?: boolean };
  /** Fork the cast from a step, or from its current state. */
  fork: { step?: number | null };
  /** Start a new cast with the same request, loadout and agents. */
  again: {};
  /** Compare two steps or two casts. */
  compare: { socket?: string | null; row?: number | null; other?: number | null; cast?: string | null };
  /** Save the cast as a web page. */
  page: {};
  /** Save the cast in the project as a test of its loadout. */
  keep_test: {};
  /** Set the name of the cast. */
  label: { text: string };
  /** Pin the last answer of a socket, or unpin it. */
  pin: { socket: string };
  /** Return the timeline rows from ``first`` to ``last``. */
  rows: { token: string; first: number; last: number };
  /** Return the numbers of the timeline rows whose steps contain a search text. */
  find: { token: string; text: string };
  /** Return the id and a description of every cast that can be compared with this cast. */
  casts: { token: string };
  /** Validate typed text as an answer, a correction or a state value, and return the problems. */
  check: { token: string; purpose: "reply" | "by_hand" | "correction" | "value"; text: string };
  /** Return the problems of an edited list of work items, and the effects of applying the list. */
  check_items: { token: string; rows: Array<[string | null, string | null, (number | null)?, (boolean | null)?]>; base?: string | null; abandon?: boolean };
  /** Return the complete title and context of a work item; ``base`` is the digest of its list. */
  item_texts: { token: string; base: string; index: number };
  /** Return the complete last output so that the page can edit it. */
  last_output: { token: string };
  /** Return the complete value at a state path. */
  value: { token: string; path: Array<string> };
  /** Return how the state changed between the end of step ``a`` and the end of step ``b``. */
  diff: { token: string; a: number; b: number };
}

/** Messages to the panel of all casts. */
export interface ToCasts {
  /** Filter the list by text and status, and sort it by a column. */
  look: { text?: string; only?: "all" | "waits" | "failed" | "tagged"; by?: "state" | "request" | "loadout" | "when" | "steps" | "cost"; down?: boolean };
  /** Read the list of casts again. */
  refresh: {};
  /** Select the cast with this id. */
  select: { cast: string };
  /** Show a cast below the list, read-only. */
  open: { cast: string };
  /** Open a cast below the list so that the user can continue it. */
  resume: { cast: string };
  /** Fork a cast at its current state, and show the fork below the list. */
  fork: { cast: string };
  /** Show the differences between two casts below the list. */
  compare: { a: string; b: string; identities: [string, string] };
  /** Set the name and tags of a cast; words that begin with ``#`` become tags. */
  label: { cast: string; text: string };
  /** Delete a cast; the page has already asked for confirmation. */
  delete: { cast: string };
  /** Close the cast or comparison below the list. */
  close_selected: {};
  /** Close the notice above the list. */
  dismiss: {};
  /** Return the rows from ``first`` to ``last`` if ``order`` is still the number of the current sort order. */
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
  /** Return the graph as SVG in the colours of a theme. */
  svg: { token: string; theme: "light" | "dark" };
  /** Return a page on which the user plays through the loadout; see :meth:`.ExploreView.play`. */
  play: { token: string };
  /** Report a click on the background. */
  ground: {};
  /** Open a part in the inspector. */
  open: { element: string };
  /** Set or remove a breakpoint at a part; with ``after``, the cast stops after the socket, not before it. */
  break: { element: string; after?: boolean };
  /** Add an edge between two sockets, or from a socket to the end. */
  connect: { from: string; to: string };
  /** Change the condition of an edge or exit. */
  when: { of: string; when: "always" | "satisfied" | "not_satisfied" | "failed" };
  /** Move an edge or exit up or down by one position. */
  reorder: { of: string; offset: -1 | 1 };
  /** Move the centre of a socket to a point in the picture, in pixels. */
  move: { id: string; x: number; y: number };
  /** Mark the sockets inside the rectangle that the user has drawn. */
  marquee: { ids: Array<string> };
  /** Remove the marked sockets, or a part. */
  delete: { ids?: Array<string>; of?: string };
  /** Add a socket with the given materia at a point in the picture, in pixels. */
  add: { materia: string; x: number; y: number };
  /** Undo the last change to the design. */
  undo: {};
  /** Redo the last change that was undone. */
  redo: {};
  /** Copy sockets to the clipboard. */
  copy: { ids?: Array<string> };
  /** Copy sockets to the clipboard, and remove them. */
  cut: { ids?: Array<string> };
  /** Insert the copied sockets. */
  paste: {};
  /** Insert copies of sockets without changing the clipboard. */
  duplicate: { ids?: Array<string> };
}

/** Messages to the picture of a question. */
export interface ToQuestion {
  /** Submit the guess that the step with this number leads to this socket. */
  guess: { target: string; number: number };
}

/** Messages to the designer of a loadout. */
export interface ToDesign {
  /** Add a socket with the given materia as one step; if the materia does not exist, offer to create it. */
  add: { materia: string; x?: number | null; y?: number | null; positions?: Record<string, [number, number]> | null; source?: string | null; make?: string | null };
  /** Add an edge from a socket to another socket or to the end */
  add_edge: { source: string; to: string; when?: string; index?: unknown; max_traversals?: unknown };
  /** Add an exit to a loop. The exit is taken after the last item of the list */
  add_exit: { loop: string; source: string; condition: string; target: string; id?: string | null };
  /** Add a socket that places a materia and has no edges. The first socket of a loadout becomes its entry */
  add_socket: { materia: string; id?: string | null };
  /** Answer the open question with the choice at index ``number``; any other number dismisses the question. */
  answer: { number?: number; question?: number | null };
  /** Start a cast of the current design. */
  cast: { design: string; request: string };
  /** Change the condition or the target of an edge */
  change_edge: { source: string; index: unknown; when?: string | null; to?: string | null };
  /** Change the source, condition, target or id of a loop exit. Arguments that are None keep their values */
  change_exit: { loop: string; index: unknown; source?: string | null; condition?: string | null; target?: string | null; id?: string | null };
  /** Compare all possible casts of the saved loadout with those of the current design. */
  compare: {};
  /** Add an edge between two sockets. */
  connect: { from: string; to: string; when?: string | null; max_traversals?: unknown };
  /** Copy the marked or selected sockets. */
  copy: {};
  /** Give a socket its own copy of its materia, with the same display name */
  copy_materia: { socket: string; id: string };
  /** Copy the marked or selected sockets, and remove them. */
  cut: {};
  /** Remove the part ``of``, or by default the marked sockets or the selected part. */
  delete: { of?: unknown };
  /** Delete a loop and its exits, but not its sockets and their edges */
  delete_loop: { id: string };
  /** Continue with a draft, or discard it. */
  draft: { file: string; discard?: boolean };
  /** Insert a copy of the marked or selected sockets without changing the clipboard. */
  duplicate: {};
  /** Turn an edge into a loop exit, which is taken only after the last item of the list */
  edge_to_exit: { socket: string; index: unknown; loop: string };
  /** Estimate the turns, tokens and cost of a cast; the result is shown next to the request. */
  estimate: {};
  /** Add an exit to a loop. */
  exit: { loop: string; from: string; when: string; to: string };
  /** Turn a loop exit into an edge, which is taken after any item */
  exit_to_edge: { loop: string; index: unknown };
  /** Explore all possible runs of the design. */
  explore: {};
  /** Apply the automatic fix for a problem or hint. */
  fix: { code: string; source: string };
  /** Discard a refused value. */
  forget: { of: [string, string] | [string, string, string]; field: string };
  /** Set the maximum number of traversals of an edge, or remove it with None (R18) */
  limit_edge: { source: string; index: unknown; max_traversals: unknown };
  /** Create a loop that runs its sockets for each work item of the generator whose edge enters the loop. */
  loop: { ids?: Array<string> | null; exits?: boolean | null };
  /** Create a loop region from sockets */
  make_loop: { sockets: unknown; id?: string | null; consumes?: unknown; iterator?: unknown };
  /** Create an agent or utility from a template */
  make_materia: { id: string; kind: string };
  /** Mark a socket, or remove its mark. */
  mark: { id: string };
  /** Mark the sockets inside the rectangle that the user has drawn. */
  marquee: { ids: Array<string> };
  /** Set the members of a loop; by default, the marked sockets become its members. */
  members: { loop: string; ids?: Array<string> | null };
  /** Move a socket to a column and row; ``positions`` fixes the positions of the other sockets. */
  move: { id: string; x: number; y: number; positions?: Record<string, [number, number]> | null };
  /** Move an edge to position ``to`` in the socket's list of edges */
  move_edge: { source: string; index: unknown; to: unknown };
  /** Move an exit to position ``to`` in the loop's list of exits */
  move_exit: { loop: string; index: unknown; to: unknown };
  /** Offer a draft that a coding agent has handed over since the design was opened. */
  news: {};
  /** Insert the copied sockets. */
  paste: {};
  /** Select a part. With ``add``, a socket joins the marked sockets; with ``keep``, the marks do not change. */
  pick: { part?: unknown; add?: boolean; keep?: boolean };
  /** Set the positions of sockets in drawings, as columns and rows, or remove positions with None */
  place_sockets: { positions: unknown };
  /** Redo the last change that was undone. */
  redo: {};
  /** Reload the design from disk. */
  reload: {};
  /** Remove an edge, which may be malformed */
  remove_edge: { source: string; index: unknown };
  /** Remove an exit, which may be malformed */
  remove_exit: { loop: string; index: unknown };
  /** Remove a socket and everything that refers to it */
  remove_socket: { id: string };
  /** Remove several sockets as one step */
  remove_sockets: { ids: unknown };
  /** Rename a loop */
  rename_loop: { old: string; new: string };
  /** Rename a socket and update all references to it */
  rename_socket: { old: string; new: string };
  /** Move an edge or exit up or down by one position. */
  reorder: { of: unknown; offset: -1 | 1 };
  /** Save the design to its file or to ``to``; ask for confirmation before overwriting changes made elsewhere. */
  save: { to?: string | null; anyway?: boolean };
  /** Set a field of a part. A refused value stays in its input field, together with the reason. */
  set: { of: [string, string] | [string, string, string]; field: string; value?: unknown; make?: string | null; everywhere?: boolean };
  /** Set the socket where a cast starts */
  set_entry: { id: string };
  /** Set the description, label, handoff, finalize, castContext or lockState of the loadout, or remove this field with None */
  set_loadout: { field: string; value: unknown };
  /** Set the field ``label`` of a loop, or remove ``label`` or ``exit`` with None */
  set_loop: { id: string; field: string; value: unknown };
  /** Set a field of a materia, or remove the field with None. This affects all loadouts that place the materia */
  set_materia: { id: string; field: string; value: unknown };
  /** Set the members of a loop, and remove the exits of sockets that are no longer members */
  set_members: { id: string; sockets: unknown };
  /** Set a field of a socket, or remove the field with None */
  set_socket: { id: string; field: string; value: unknown };
  /** Set the list that a loop processes */
  set_source: { id: string; source: unknown; from?: unknown; items?: unknown; output?: unknown; as?: unknown; cursor?: unknown };
  /** Set the source of a loop: the work items of the likely generator, a list in the state, or no source. */
  source: { loop: string; source?: string | null };
  /** Move all cards to the positions that the layout computes. */
  tidy: {};
  /** Convert an edge to an exit, or an exit to an edge. */
  turn: { of: unknown };
  /** Undo the last change. */
  undo: {};
  /** Set the condition of an edge or exit. */
  when: { of: unknown; when: string };
  /** Highlight the shortest path to an outcome on the canvas, or show the proof that no cast takes such a path. */
  witness: { outcome: string; without?: string | null; since?: string | null };
}
