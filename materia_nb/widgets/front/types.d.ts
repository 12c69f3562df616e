/** Types that the modules of the front end share. Data from the kernel has loose types here; each part narrows them. */

/** All style sheets as one string, which `make front` inserts. */
declare const STYLES: string;

type Child = Node | string | number | null | undefined | false | Child[];

interface Attributes {
  [name: string]: any;
  onclick?: (event: MouseEvent) => void;
  onchange?: (event: Event) => void;
  oninput?: (event: Event) => void;
  onkeydown?: (event: KeyboardEvent) => void;
}

/** Read-only content as a list of blocks; `is` names the kind of each block. */
type Blocks = { is: string; [name: string]: any }[];

/** A block to draw; its kind determines which of these fields it has. */
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

/** Data from the kernel; its fields are checked where they are used. */
type Data = Record<string, any>;

/** The model of a widget, as anywidget provides it. */
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
  (kind: string, values?: Data): void;
}

/** Send the messages of the canvas or of design mode. */
type SendToCanvas = import("./messages.js").Send<import("./messages.js").ToCanvas>;
type SendToDesigner = import("./messages.js").Send<import("./messages.js").ToDesign>;

/** Sends messages to the panel of a cast, and asks the kernel questions. */
type PanelSender = import("./messages.js").Send<ToCast> & {
  ask<Kind extends keyof ToCast>(kind: Kind, values: Omit<ToCast[Kind], "token">): Promise<Data>;
  linkTo?: LinkTo;
};

/** Returns the attributes of a link to a file relative to the notebook's folder; null if it cannot be opened. */
type LinkTo = (file: string) => Attributes | null;

/** The messages of a cast that need no fields. */
type Plain = { [Kind in keyof ToCast]: {} extends ToCast[Kind] ? Kind : never }[keyof ToCast];

/** Typed text that has not been applied, and the message that would apply it. */
interface Unsent {
  words: string;
  message: Data;
}

/** A part of the surface. */
interface Part {
  update(data: any): void;
  unsent?: () => Unsent[];
  destroy?: () => void;
}

/** Functions that the parts of a surface share. */
interface Shell {
  unsent(): Unsent[];
  folded(name: string): boolean;
  fold(name: string): void;
  askLine(words: string, value: string, act: (text: string) => void, shape?: string): void;
}

interface MenuEntry {
  words: string;
  sign?: Parameters<typeof import("./dom.js").icon>[0];
  /** An entry without this function is a line of text. */
  act?: () => void;
  /** True if it acts on the cast; a click then counts only after the menu has been visible for a moment. */
  acts?: boolean;
  tone?: string;
  off?: boolean;
  /** Its tooltip: the effect, or the reason why it is disabled. */
  why?: string;
}

interface Point {
  x: number;
  y: number;
}

type Size = readonly [number, number];

// -- the graph ------------------------------------------------------------------

/** The part of the Cytoscape API used here (https://js.cytoscape.org). A collection of one element has its methods. */
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
  destroyed(): boolean;
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

/** Colours by role. */
type Colours = Record<string, string>;

/** A condition of edges and its appearance. */
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

/** The part that an element represents: its kind, and its id in the loadout. */
type PartReference = [kind: string, id: string];

interface SceneNode {
  id: string;
  x: number;
  y: number;
  w: number;
  h: number;
  classes: string;
  pick?: PartReference;
  fold?: [number, number];
  of?: string;
}

interface SceneEdge {
  id: string;
  classes: string;
  pick?: PartReference;
  [name: string]: any;
}

/** Data that does not change while a graph is displayed. */
interface Scene {
  number: number;
  nodes: SceneNode[];
  edges: SceneEdge[];
  size: Size;
  /** Top left corner of the picture. */
  corner: Size;
  /** Level of detail of the cards: name only, with the agent, or with the result. */
  level: number;
  /** Smallest zoom at which its text is readable. */
  readable: number;
  edge: number;
  sockets: number;
  direction: "right" | "down";
  list: [words: string, element: string, depth: number][];
  entry?: string;
  fresh?: boolean;
}

/** Current appearance of the elements, by id. */
type Look = Record<string, { classes?: string; words?: string; svg?: string }>;

interface Flags {
  mode?: "cast" | "design";
  name?: string;
  selected?: string | null;
  current?: string | null;
  marked?: string[];
  /** True if the graph shows a cast. */
  follows?: boolean;
}
