/** Types that the modules here share. What the kernel tells stands as loosely as it is used: each part says more where it reads it. */

/** All style sheets as one text, put in by `make front`. */
declare const STYLES: string;

type Child = Node | string | number | null | undefined | false | Child[];

interface Attributes {
  [name: string]: any;
  onclick?: (event: MouseEvent) => void;
  onchange?: (event: Event) => void;
  oninput?: (event: Event) => void;
  onkeydown?: (event: KeyboardEvent) => void;
}

/** What is only to be read, as a list of blocks: each says what it is. */
type Blocks = { is: string; [name: string]: any }[];

/** A block that is drawn: which of these fields it has follows from what it is. */
interface Block {
  is: string;
  text: string;
  tone?: string;
  small?: boolean;
  title: string;
  open: boolean;
  inside: Block[];
  rows: any[][];
  ticks: [place: number, words: string][];
  lanes: string[];
  headers: string[];
  [name: string]: any;
}

/** A thing that the kernel told: its own fields are checked where they are used. */
type Told = Record<string, any>;

/** The model of a widget, as anywidget gives it. */
interface Model {
  get(name: string): any;
  send(message: object): void;
  on(name: string, act: (message: any) => void): void;
  off(name: string, act: (message: any) => void): void;
  widget_manager: { get_model(id: string): Promise<any>; context?: { path: string }; kernel?: object | null };
}

type ToCast = import("./messages.js").ToCast;

/** Sends a message of any kind to the kernel. */
interface Send {
  (kind: string, values?: Told): void;
}

/** Sends what the canvas, and what design mode tells. */
type ToldByCanvas = import("./messages.js").Send<import("./messages.js").ToCanvas>;
type ToldByDesign = import("./messages.js").Send<import("./messages.js").ToDesign>;

/** Sends what the panel of a cast is told, and asks for what the kernel answers. */
type Talk = import("./messages.js").Send<ToCast> & {
  ask<Kind extends keyof ToCast>(kind: Kind, values: Omit<ToCast[Kind], "token">): Promise<Told>;
  linkTo?: LinkTo;
};

/** The attributes of a link to a file, told from the notebook's folder on; null for one that cannot be opened. */
type LinkTo = (file: string) => Attributes | null;

/** The messages of a cast that need no fields. */
type Plain = { [Kind in keyof ToCast]: {} extends ToCast[Kind] ? Kind : never }[keyof ToCast];

/** What was typed and not applied yet, and the message that would apply it. */
interface Unsent {
  words: string;
  message: Told;
}

/** A part of the surface. */
interface Part {
  update(data: any): void;
  unsent?: () => Unsent[];
  destroy?: () => void;
}

/** What the parts of a surface share. */
interface Shell {
  unsent(): Unsent[];
  folded(name: string): boolean;
  fold(name: string): void;
  askLine(words: string, value: string, act: (text: string) => void, shape?: string): void;
}

interface MenuEntry {
  words: string;
  sign?: Parameters<typeof import("./dom.js").icon>[0];
  /** Without it the entry is a line of text. */
  act?: () => void;
  /** Whether it acts on the cast: then a press counts only after the menu has been seen for a moment. */
  acts?: boolean;
  tone?: string;
  off?: boolean;
  /** Why it is off. */
  why?: string;
}

interface Point {
  x: number;
  y: number;
}

type Size = readonly [number, number];

// -- the graph ------------------------------------------------------------------

/** What of cytoscape's interface is used here: https://js.cytoscape.org. A collection of one has the methods of an element. */
interface CyElements {
  id(): string;
  data(name: string, value?: unknown): any;
  scratch(name: string, value?: unknown): any;
  position(): Point;
  position(axis: "x" | "y"): number;
  position(at: Point): void;
  midpoint(): Point;
  renderedPosition(): Point;
  renderedMidpoint(): Point;
  renderedBoundingBox(options: object): { x1: number; x2: number; y1: number; y2: number };
  isNode(): boolean;
  hasClass(name: string): boolean;
  addClass(names: string): CyElements;
  removeClass(names: string): CyElements;
  classes(names: string): CyElements;
  empty(): boolean;
  nonempty(): boolean;
  removed(): boolean;
  remove(): void;
  source(): CyElements;
  outgoers(selector: string): CyElements;
  connectedEdges(): CyElements;
  filter(test: (one: CyElements) => boolean): CyElements;
  map<T>(make: (one: CyElements) => T): T[];
  toArray(): CyElements[];
}

interface CyEvent {
  type: string;
  target: CyElements;
  position: Point;
  renderedPosition: Point;
  originalEvent?: MouseEvent;
}

interface Cy {
  add(elements: object[]): void;
  autoungrabify(on: boolean): void;
  autounselectify(on: boolean): void;
  batch(act: () => void): void;
  boxSelectionEnabled(on: boolean): void;
  center(on: CyElements): void;
  container(): HTMLElement;
  elements(selector?: string): CyElements;
  getElementById(id: string): CyElements;
  height(): number;
  minZoom(): number;
  minZoom(zoom: number): void;
  nodes(selector?: string): CyElements;
  on(events: string, act: (event: CyEvent) => void): void;
  on(events: string, selector: string, act: (event: CyEvent) => void): void;
  pan(): Point;
  png(options: object): Promise<Blob>;
  renderer(): any;
  resize(): void;
  style(): { fromJson(rules: object[]): { update(): void } };
  userPanningEnabled(on: boolean): void;
  viewport(to: { zoom: number; pan: Point }): void;
  width(): number;
  zoom(): number;
  zoom(to: { level: number; renderedPosition: Point }): void;
}

/** Colours by what they are for. */
type Colours = Record<string, string>;

/** What a line waits for, and how that looks. */
interface DrawnCondition {
  class: string;
  choice: string;
  line: string;
  ink: import("./messages.js").ToCanvas["when"]["when"];
  dashes: number[] | null;
}

interface Fixed {
  themes: { light: Colours; dark: Colours };
  conditions: DrawnCondition[];
  font: string;
}

/** What an element stands for: its kind, and its id in the loadout. */
type Pick_ = [kind: string, id: string];

interface SceneNode {
  id: string;
  x: number;
  y: number;
  w: number;
  h: number;
  classes: string;
  pick?: Pick_;
  fold?: [number, number];
  of?: string;
}

interface SceneEdge {
  id: string;
  classes: string;
  pick?: Pick_;
  [name: string]: any;
}

/** What never changes while a graph is shown. */
interface Scene {
  number: number;
  nodes: SceneNode[];
  edges: SceneEdge[];
  size: Size;
  /** Where the picture begins. */
  corner: Size;
  /** How much a card says: its name, who answers too, and what came of it. */
  level: number;
  /** the zoom under which its smallest text could not be read */
  readable: number;
  edge: number;
  sockets: number;
  direction: "right" | "down";
  list: [words: string, element: string, depth: number][];
  entry?: string;
  fresh?: boolean;
}

/** How the elements look now, by their ids. */
type Look = Record<string, { classes?: string; words?: string; svg?: string }>;

interface Flags {
  mode?: "cast" | "design";
  name?: string;
  selected?: string | null;
  current?: string | null;
  marked?: string[];
  /** Whether there is a cast behind it. */
  follows?: boolean;
}
