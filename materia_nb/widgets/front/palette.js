/** The palette of design mode: click or drag a materia into the graph, or create one. */
import { openMenu } from "./menu.js";
import { h, askLine, button, isNew, neighbour, onKeys, redraw, setText, MATERIA_TYPE, icon } from "./dom.js";

/** Return true if a text contains every word of a query. @param {string} text @param {string} query */
export const matches = (text, query) => query.trim().toLowerCase().split(/\s+/).every((word) => text.includes(word));

/**
 * Return the materia that Enter adds for a typed search: the materia with this name, the only match, a new materia, or null while several match.
 * @param {string} typed @param {Group[]} all @param {string[]} foundIds the ids of the matches
 */
export function addedBy(typed, all, foundIds) {
  const exact = all.flatMap((item) => item.entries).find((item) => item.id.toLowerCase() === typed.toLowerCase());
  return exact?.id ?? (foundIds.length === 1 ? foundIds[0] : foundIds.length ? null : typed);
}

/** Return the icon of a materia. @param {Entry} entry @returns {"generator"|"utility"|"model"} */
const signOf = (entry) => (entry.generator ? "generator" : entry.kind === "utility" ? "utility" : "model");

/** @param {HTMLElement} host @param {SendToDesigner} send @returns {Part & {askForSocket: (event: Event) => void}} */
export function palettePart(host, send) {
  const find = h("input", { class: "mnb-in mnb-d-find", type: "search", placeholder: "search", "aria-label": "search materia; press Enter to add the materia with this name", autocomplete: "off", spellcheck: "false" });
  const none = h("div", { class: "mnb-dim mnb-d-none", hidden: true }), groups = h("div", { class: "mnb-d-groups" }), newName = h("div", { class: "mnb-d-new", hidden: true });
  /** @type {Group[]} */
  let data = [];
  const entries = (/** @type {ParentNode} */ within) => [.../** @type {NodeListOf<HTMLElement>} */ (within.querySelectorAll(".mnb-d-entry"))];
  const visibleEntries = () => entries(groups).filter((node) => !node.hidden);
  const filter = () => {
    for (const node of entries(groups)) node.hidden = !matches(node.dataset.sought ?? "", find.value);
    for (const group of /** @type {HTMLElement[]} */ ([...groups.children])) group.hidden = entries(group).every((node) => node.hidden);
    none.hidden = visibleEntries().length > 0;
    setText(none, find.value.trim() ? "no match: press Enter to create it" : "no materia yet");
  };
  const clear = () => {
    find.value = "";
    filter();
  };
  const add = (/** @type {string} */ materia) => {
    send("add", { materia });
    clear();
  };
  find.addEventListener("input", filter);
  find.addEventListener("focus", () => find.select());
  onKeys(find, {
    Escape: () => (find.value ? clear() : false),
    ArrowDown: () => visibleEntries()[0]?.focus(),
    Enter() {
      const typed = find.value.trim(), materiaId = typed && addedBy(typed, data, visibleEntries().map((node) => node.dataset.key ?? ""));
      if (materiaId) add(materiaId);
      else if (typed) visibleEntries()[0].focus();
    },
  });
  const first = () => document.activeElement === visibleEntries()[0];
  onKeys(groups, { ArrowDown: () => document.activeElement !== visibleEntries().at(-1) && neighbour(visibleEntries(), 1)?.focus(), ArrowUp: () => (first() ? find : neighbour(visibleEntries(), -1))?.focus() });

  const entry = (/** @type {Entry} */ materia) => {
    const mark = h("span", { class: "mnb-d-mark", "data-generator": materia.generator ? "yes" : null, "aria-hidden": "true" }, icon(signOf(materia)));
    if (materia.colour) mark.style.color = materia.colour;
    const node = button("", materia.about || materia.id, () => add(materia.id), {
      class: "mnb-d-entry", draggable: "true", "data-key": materia.id, "data-materia": materia.id, "data-work": materia.kind,
      "data-sought": `${materia.id} ${materia.label} ${materia.about} ${materia.kind}`.toLowerCase(), "aria-label": `add ${materia.id}, ${materia.kind}${materia.generator ? ", makes work items" : ""}`,
    });
    node.append(mark, h("span", { class: "mnb-d-name" }, materia.label, materia.label !== materia.id && h("small", { class: "mnb-dim" }, ` ${materia.id}`)),
      materia.placed ? h("small", { class: "mnb-dim" }, `×${materia.placed}`) : "");
    node.addEventListener("dragstart", ({ dataTransfer }) => {
      dataTransfer?.setData(MATERIA_TYPE, materia.id);
      dataTransfer?.setData("text/plain", materia.id);
      if (dataTransfer) dataTransfer.effectAllowed = "copy";
    });
    return node;
  };
  /** Ask for the socket to add where a connection was dropped. @param {Event} event */
  const askForSocket = (event) => {
    const { source, x, y, at } = /** @type {CustomEvent} */ (event).detail;
    const creator = (/** @type {"agent"|"utility"} */ kind) => ({ words: `make the ${kind}`, sign: /** @type {const} */ ("plus"), act: (/** @type {string} */ id) => send("add", { materia: id, make: kind, x, y, source }) });
    openMenu({ ...at, within: host }, [
      ...data.flatMap((group) => group.entries.map((materia) => ({ words: materia.label === materia.id ? materia.id : `${materia.label} ${materia.id}`, sign: signOf(materia), act: () => send("add", { materia: materia.id, x, y, source }) }))),
      { words: "the end of the cast", sign: /** @type {const} */ ("exit"), act: () => send("connect", { from: source, to: "end" }) },
    ], { label: "next materia", searchable: true, named: [creator("agent"), creator("utility")] });
  };
  /** Ask for the name of a new materia, then create and place it. @param {"agent"|"utility"} kind */
  const askFor = (kind) => askLine(newName, { words: `name of the new ${kind}`, shape: "name" }, (id) => id && send("add", { materia: id, make: kind }));
  const maker = (/** @type {"agent"|"utility"} */ kind) => button(`+ ${kind}`, `create a new ${kind} and add it to the graph`, () => askFor(kind), { class: "mnb-b mnb-small mnb-quiet" });
  host.append(h("div", { class: "mnb-d-palette" }, find, h("div", { class: "mnb-d-news" }, maker("agent"), maker("utility")), newName, none, groups));
  return {
    /** @param {{palette?: {groups: Group[]}}} slice */
    update({ palette }) {
      data = palette?.groups ?? [];
      if (!isNew(groups, data)) return;
      redraw(groups, () => data.map(({ title, entries: all }) => h("div", { role: "group", "aria-label": title }, h("div", { class: "mnb-d-group" }, title), all.map(entry))), find);
      filter();
    },
    askForSocket,
    destroy: () => host.replaceChildren(),
  };
}
