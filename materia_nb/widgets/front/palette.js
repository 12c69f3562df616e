/** The palette of design mode: every materia, to be clicked or dragged into the graph; and new ones. */
import { icon } from "./icons.js";
import { openMenu } from "./menu.js";
import { h, button, isNew, neighbour, onKeys, redraw, refill, setText, MATERIA_TYPE } from "./dom.js";

/** Whether a text holds every word that is sought. @param {string} text @param {string} sought */
export const matches = (text, sought) => sought.trim().toLowerCase().split(/\s+/).every((word) => text.includes(word));

/**
 * What Enter does with what is typed into the search: adds the one that is named or found, makes one of that name, or nothing yet.
 * @param {string} typed @param {Group[]} all @param {string[]} found the ids of those that it finds
 */
export function addedBy(typed, all, found) {
  const exact = all.flatMap((one) => one.entries).find((one) => one.id.toLowerCase() === typed.toLowerCase());
  return exact?.id ?? (found.length === 1 ? found[0] : found.length ? null : typed);
}

/** The icon of a materia. @param {Entry} one @returns {"generator"|"utility"|"model"} */
const signOf = (one) => (one.generator ? "generator" : one.kind === "utility" ? "utility" : "model");

/** @param {HTMLElement} host @param {ToldByDesign} send @returns {Part} */
export function palettePart(host, send) {
  const find = h("input", { class: "mnb-in mnb-d-find", type: "search", placeholder: "search", "aria-label": "search materia; Enter adds the one that is named", autocomplete: "off", spellcheck: "false" });
  const none = h("div", { class: "mnb-dim mnb-d-none", hidden: true }), groups = h("div", { class: "mnb-d-groups" }), asked = h("div", { class: "mnb-d-new", hidden: true });
  /** @type {Group[]} */
  let data = [];
  const entries = (/** @type {ParentNode} */ within) => [.../** @type {NodeListOf<HTMLElement>} */ (within.querySelectorAll(".mnb-d-entry"))];
  const shown = () => entries(groups).filter((one) => !one.hidden);
  const filter = () => {
    for (const one of entries(groups)) one.hidden = !matches(one.dataset.sought ?? "", find.value);
    for (const group of /** @type {HTMLElement[]} */ ([...groups.children])) group.hidden = entries(group).every((one) => one.hidden);
    none.hidden = shown().length > 0;
    setText(none, find.value.trim() ? "none is called so: Enter makes one" : "there are none yet");
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
    ArrowDown: () => shown()[0]?.focus(),
    Enter() {
      const typed = find.value.trim(), wanted = typed && addedBy(typed, data, shown().map((one) => one.dataset.key ?? ""));
      if (wanted) add(wanted);
      else if (typed) shown()[0].focus();
    },
  });
  const first = () => document.activeElement === shown()[0];
  onKeys(groups, { ArrowDown: () => document.activeElement !== shown().at(-1) && neighbour(shown(), 1)?.focus(), ArrowUp: () => (first() ? find : neighbour(shown(), -1))?.focus() });

  const entry = (/** @type {Entry} */ one) => {
    const mark = h("span", { class: "mnb-d-mark", "data-generator": one.generator ? "yes" : null, "aria-hidden": "true" }, icon(signOf(one)));
    if (one.colour) mark.style.color = one.colour;
    const made = button("", one.about || one.id, () => add(one.id), {
      class: "mnb-d-entry", draggable: "true", "data-key": one.id, "data-materia": one.id, "data-work": one.kind,
      "data-sought": `${one.id} ${one.label} ${one.about} ${one.kind}`.toLowerCase(), "aria-label": `add ${one.id}, ${one.kind}${one.generator ? ", makes work items" : ""}`,
    });
    made.append(mark, h("span", { class: "mnb-d-name" }, one.label, one.label !== one.id && h("small", { class: "mnb-dim" }, ` ${one.id}`)),
      one.placed ? h("small", { class: "mnb-dim" }, `×${one.placed}`) : "");
    made.addEventListener("dragstart", ({ dataTransfer }) => {
      dataTransfer?.setData(MATERIA_TYPE, one.id);
      dataTransfer?.setData("text/plain", one.id);
      if (dataTransfer) dataTransfer.effectAllowed = "copy";
    });
    return made;
  };
  /** Ask what comes after a socket, at a point where a line from it was let go. @param {Event} event */
  const goOn = (event) => {
    const { source, x, y, at } = /** @type {CustomEvent} */ (event).detail;
    const made = (/** @type {"agent"|"utility"} */ what) => ({ words: `make the ${what}`, sign: /** @type {const} */ ("plus"), act: (/** @type {string} */ id) => send("make", { what, id, then: { kind: "add", x, y, source } }) });
    openMenu({ ...at, within: host }, [
      ...data.flatMap((group) => group.entries.map((one) => ({ words: one.label, sign: signOf(one), act: () => send("add", { materia: one.id, x, y, source }) }))),
      { words: "the end of the cast", sign: /** @type {const} */ ("exit"), act: () => send("connect", { from: source, to: "end" }) },
    ], { label: `what comes after ${source}`, sought: true, named: [made("agent"), made("utility")] });
  };
  /** @type {Element|null} */
  let surface = null;
  /** Ask for the name of a new materia, and make and place it. @param {"agent"|"utility"} what */
  const askFor = (what) => {
    const name = h("input", { class: "mnb-in", placeholder: `name of the ${what}`, "aria-label": `name of the new ${what}`, autocomplete: "off" });
    const close = () => {
      asked.hidden = true;
      find.focus();
    };
    const done = () => {
      const id = name.value.trim();
      if (!id) return name.focus();
      send("make", { what, id, then: { kind: "add", materia: id } });
      close();
    };
    onKeys(name, { Enter: done, Escape: close });
    refill(asked, name, button("Make", `make the ${what} and place it`, done, { class: "mnb-b mnb-small mnb-main" }));
    asked.hidden = false;
    name.focus();
  };
  const maker = (/** @type {"agent"|"utility"} */ what) => button(`+ ${what}`, `make a new ${what} and place it`, () => askFor(what), { class: "mnb-b mnb-small mnb-quiet" });
  host.append(h("div", { class: "mnb-d-palette" }, find, h("div", { class: "mnb-d-news" }, maker("agent"), maker("utility")), asked, none, groups));
  return {
    /** @param {{palette?: {groups: Group[]}}} slice */
    update({ palette }) {
      data = palette?.groups ?? [];
      if (!surface) {
        surface = host.closest(".mnb-surface");
        surface?.addEventListener("mnb-go-on", goOn);
      }
      if (!isNew(groups, data)) return;
      redraw(groups, () => {
        return data.map((group, place) => h("div", { role: "group", "aria-label": group.title }, h("div", { class: "mnb-d-group", id: `mnb-d-group-${place}` }, group.title), group.entries.map(entry)));
      }, find);
      filter();
    },
    destroy() {
      surface?.removeEventListener("mnb-go-on", goOn);
      host.replaceChildren();
    },
  };
}
