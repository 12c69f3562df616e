/** The data that the kernel sends to the parts of a surface, grouped by the modules that draw the parts. */
// bar.js
type Break = {words: string, breakpoint: any};
type Usage = {
  tokens: number|null; cost?: number|null; most?: number|null; mostCost?: number|null; others?: string; unknown?: number; counts?: string;
  warn?: boolean;
};
type Bar = Usage & {
  modes?: ("cast"|"design")[]; mode?: string; tone: string; words?: string; detail?: string; since?: number|null; busy?: boolean;
  stopped?: boolean; can?: Record<string, boolean>; why?: string;
  asks?: {words: string, whole: boolean}|null; breaks?: Break[]; sockets?: [string, string][]; allowed?: string[];
  undo?: boolean; again?: Repetition[];
};
/** An action of the menu "Again": its label, its effect, and its message. */
type Repetition = {words: string, title: string, message: any};

// inspector.js
type Title = {
  name: string; kind: string; id?: string; chips: string[]; step?: number; present?: boolean; answered?: boolean; pinned?: boolean;
  stops?: [words: string, breakpoint: any, set: boolean][];
};
type Inspector = {title?: Title, tabs: [string, string, boolean][], tab: string, content: Data};

// answer.js
type Asks = {
  is: "hold"|"calls"; key: string; words: string; said: string; blocks: Blocks; approve?: boolean; deny?: boolean;
  sockets: [string, string][];
};
type Form = {
  words: string; person: boolean; text: boolean; draft: boolean; items: boolean; wanted: [string, string][]; task: [string, string][]; wish?: string;
  verdict?: {yes: string, no: string}; previous?: {who: string, text: string, cut: boolean};
};
type Correction = {key: string, words: string, text: string|null};

// failed.js
type Remedy = {name: string, words: string, does: string};
type Failure = {key: string, main: string, socket: string, offers: Remedy[], form: string, refused: string, says: string, budget: string, blocks: Blocks, more: Blocks, files?: Record<string, string>};
/** A button and the element that it opens */
type RemedyControls = [act: Node, opens?: Node];

// prompts.js
type Layer = {name: string, heading: string, text: string, open: boolean};
type Prompt = {key: string, words: string, edit: boolean, layers: Layer[]};

// statetree.js
type StateNode = {
  path: string[]; name: string; kind: string; text: string; cut?: number; same?: string[]; count?: number; children?: StateNode[];
  more?: number;
};
type StateSlice = {nodes?: StateNode[], edit?: boolean, watched?: string[], blocks?: Blocks, limits?: Blocks, steps?: number, at?: number};
type Editor = {box: HTMLElement, path: string, field: HTMLTextAreaElement, was: string, asText: boolean};

// timeline.js
/** True if the step has ended, its seconds, a description of its time, its start and end on the time axis, true if its time is known. */
type Time = [over: boolean, seconds: string, words: string, ms: number, waits: number, msAfter: number, waitsAfter: number, known: boolean];
type Step = [number: number, lane: string, name: string, item: [string, string]|null, out: string, verdict: string, next: string, tokens: number, cost: number, time: Time, marks: string[]];
type Span = [ms: number, waits: number];
/** Rows are counted from 1. `at` is the row that the user is viewing; rows from `axis` on use the axis of the lanes. */
type Timeline = {
  id: string; total: number; at: number|null; axis: number; tail: Step[]; span: Span; lines: [number|null, string][]; line: number|null;
  busy: boolean; own: boolean; past: boolean; lanes?: Blocks;
};

// items.js
/** An edited item. `origin`: its index in the cast's list, or null for a new item. `again`: true to repeat the item. `cut`: the full length of each text that is shortened here, or 0. */
type Item = {title: string, context: string, origin: number|null, again: boolean, cut?: {title?: number, context?: number}};
type ItemField = "title"|"context";
type Items = {
  items: [title: string, context: string, ...cut: number[]][]; stands: string[]; current: number|null; can: boolean; base: string; busy?: boolean;
  at?: string; undo?: boolean; lists?: boolean; lanes?: Record<string, string>; frozen?: boolean;
};

// design_bar.js
type DesignBar = {
  name: string; changed: boolean; steps: number; fresh: boolean; problems: number; hints: number; undo: string|null;
  redo: string|null; home: string; why?: string; left: string; note: {sign: string, words: string};
  question?: {number: number, words: string, choices: string[]}|null; estimate: string; identity: string;
};

// palette.js
type Entry = {id: string, label: string, about: string, kind: string, generator: boolean, placed: number, colour?: string};
type Group = {title: string, entries: Entry[]};

// problems.js
type What = [kind: string, id: string];
type Problem = {severity: string, where: string, what: string, todo: string, code: string, source: string, fix?: string, pick?: What};
type Outcome = {sign: "ends"|"fails"|"never", what: string, about: string, witness?: string, pick?: What};
type Outcomes = {rows: Outcome[], notes: string[], route: string[], proof: [text: string, code: string] | null, names: Record<string, string>, states: number, whole: boolean, stale: boolean};
type Changes = {steps: string[], undone: string[], unsaved: {verb: string, where: string, about: string}[], more: number, compared: Blocks};
/** Opens a tab of the dock, and with a severity the first finding of that severity. */
type OpenDock = (tab: "problems"|"happens"|"changes", severity?: string) => void;
type Dock = {problems: Problem[], happens: Outcomes|null, changes: Changes};

// design_inspector.js
type EdgeRow = {what: What, when: string, to: string, most?: number, from?: string, loop?: string, tone?: string, place: number|null};
type PromptShare = {title: string, size: number, tokens: number, share: number, note: string, text: string};
/** The prompt of an agent in one situation; without `parts`, `about` gives the reason why it is unknown. */
type PromptPreview = {words: string, about: string, parts?: PromptShare[]};
type Materia = {
  id: string; work: string; users: string; fields: Field[]; told: PromptPreview[];
  variables: {name: string, about: string}[];
};
type Selected = {
  kind: string; of: What; title: string; sub: string; work?: string; fields: Field[]; json?: string; sentence?: string;
  empty?: boolean; targets: string[]; members: string[]; sockets: string[]; conditions: [string, string][]; ways: EdgeRow[];
  exits: EdgeRow[]; materia?: Materia; marked: string[]; isMarked?: boolean; entry?: boolean; source: string; removes?: string;
  first?: boolean; last?: boolean; turn?: string; names: Record<string, string>;
};

// materia_form.js
type Field = {
  of: any; name: string; label: string; about: string; input: string; shape: string; unit?: string; options: [string, string][];
  value: any; typed?: string|null; error?: string; idle?: string; first?: boolean; required?: boolean;
};
type Help = {variables?: () => {name: string, about: string}[], everywhere?: () => boolean, pickSocket?: (act: (id: string) => void) => void};
/** `labelled`: true if it is a single control whose label can be clicked */
type Control = {
  root: HTMLElement; input: HTMLElement; labelled?: boolean; flush?: () => void; revert?: () => void;
  update(now: Field): void;
};
type ControlOptions = {id: string, field: Field, commit: (value: any) => void, help: Help};
