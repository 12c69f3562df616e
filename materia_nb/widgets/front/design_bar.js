/** The bar of design mode: name, problems, undo and redo, casting and saving, and the last message. */
import { actButton, h, askLine, button, isNew, redraw, refill, setEnabled, setText, targetOf, icon } from "./dom.js";
import { openMenu } from "./menu.js";
import { counted } from "./words.js";

/** Make every form of the surface send its pending input. @param {Element|null} node */
export function flushForms(node) {
  node?.closest(".mnb-surface")?.querySelector(".mnb-d-inspector")?.dispatchEvent(new CustomEvent("mnb-flush"));
}

/** Return a sender that flushes pending form input before each message. @param {HTMLElement} host @param {SendToDesigner} send @returns {SendToDesigner} */
export const afterForms = (host, send) => (kind, /** @type {any} */ fields = {}) => {
  flushForms(host);
  send(kind, fields);
};

/** @param {HTMLElement} host @param {SendToDesigner} send @param {OpenDock} openDock @param {() => MenuEntry[]} [menuEntries] menu entries that the surface adds @returns {Part} */
export function designBarPart(host, send, openDock, menuEntries = () => []) {
  const act = afterForms(host, send);
  let identity = "";
  const name = h("b", { class: "mnb-cut mnb-d-title" }), chips = h("span", { class: "mnb-d-states" });
  const status = h("span", { class: "mnb-dim mnb-cut mnb-d-said", role: "status" });
  const line = h("div", { class: "mnb-d-ask", hidden: true });
  const ask = (/** @type {string} */ prompt, /** @type {string} */ shape, /** @type {(text: string) => void} */ done) => askLine(line, { words: prompt, shape }, (text) => text && done(text));
  const withIcon = (/** @type {Parameters<typeof icon>[0]} */ sign, /** @type {HTMLButtonElement} */ node) => (node.prepend(icon(sign)), node);
  const undo = withIcon("undo", button("", "undo the last step (Ctrl-Z)", () => act("undo"), { "aria-label": "Undo", class: "mnb-b mnb-quiet" }));
  const redo = withIcon("redo", button("", "redo the last undone step (Ctrl-Y)", () => act("redo"), { "aria-label": "Redo", class: "mnb-b mnb-quiet" }));
  const tidy = withIcon("layout", button("Tidy up", "move every card to the automatic layout; Undo reverts it", () => act("tidy"), { class: "mnb-b mnb-quiet" }));
  const estimate = h("span", { class: "mnb-dim mnb-d-estimate", role: "status" });
  const cast = button("Cast it", "start a cast of the design as it is now, saved or not; shows an estimate first", () => {
    ask("Request", "purpose of the cast", (request) => act("cast", { request, design: identity }));
    line.append(estimate);
    act("estimate");
  }, { class: "mnb-b mnb-main" });
  const save = withIcon("save", button("Save", "save it", () => act("save"), { class: "mnb-b mnb-quiet" }));
  const more = button("⋯", "more", () => openMenu(more, [
    { words: "Save as…", act: () => ask("Save as", "a file name that ends with .json, or: this notebook", (to) => act("save", { to })) },
    { words: "Reload from disk; Undo restores these edits", act: () => act("reload") },
    { words: "What do my changes change?", act: () => (openDock("changes"), act("compare")) },
    ...menuEntries(),
  ], { label: "more" }), { "aria-label": "more", "aria-haspopup": "menu", class: "mnb-b mnb-quiet" });
  host.append(undo, redo, tidy, save, name, chips, status, h("span", { class: "mnb-space" }), cast, more, line);

  /** @param {"now"|"bad"|""} tone @param {...Child} content of the line below the bar; without content the line is hidden */
  const say = (tone, ...content) => {
    line.dataset.tone = tone;
    line.hidden = !content.length;
    refill(line, content);
  };
  const chip = (/** @type {string} */ tone, /** @type {string} */ text) => h("span", { class: "mnb-d-state", "data-tone": tone }, text);
  const findings = (/** @type {string} */ severity, /** @type {number} */ count) => {
    const label = `${counted(count, severity)}: open the first`;
    return button(`${severity === "problem" ? "✖" : "○"} ${counted(count, severity)}`, label, () => openDock("problems", severity), { class: "mnb-d-state", "data-tone": severity === "problem" ? "bad" : "", "data-key": severity, "aria-label": label });
  };
  return {
    /** @param {{bar?: DesignBar}} slice */
    update({ bar }) {
      if (!bar) return;
      const { note, question } = bar, alert = note.sign === "alert";
      identity = bar.identity;
      setText(name, bar.name);
      setText(estimate, bar.estimate);
      name.title = bar.name;
      redraw(chips, () => [
        chip(bar.changed ? "now" : "", bar.changed ? "not saved" : bar.steps ? "saved" : bar.fresh ? "new" : "unchanged"),
        bar.problems ? findings("problem", bar.problems) : chip("good", "✓ can be cast"),
        bar.hints > 0 && findings("hint", bar.hints),
      ], cast);
      setEnabled(undo, bar.undo !== null, "nothing to undo");
      setEnabled(redo, bar.redo !== null, "nothing to redo");
      if (bar.undo !== null) undo.title = `undo: ${bar.undo} (Ctrl-Z)`;
      if (bar.redo !== null) redo.title = `redo: ${bar.redo} (Ctrl-Y)`;
      save.title = `save in ${bar.home}${bar.why ? ` (${bar.why})` : ""} (Ctrl-S)`;
      setText(status, alert ? "" : note.words);
      status.title = note.words;
      if (!isNew(line, [note, question])) return;
      if (question) {
        say("now", h("span", { role: "alert" }, question.words),
          question.choices.map((choice, number) => actButton(choice, choice, () => act("answer", { number, question: question.number }), { class: number ? "mnb-b" : "mnb-b mnb-main" })),
          button("Cancel", "do nothing", () => act("answer", { number: -1 })));
      } else if (alert && note.words) {
        say("bad", h("span", { role: "alert" }, `✖ ${note.words}`), button("×", "dismiss this message", () => say(""), { class: "mnb-x", "aria-label": "dismiss this message" }));
      } else if (!line.querySelector("input")) say(""); // a question stays open
    },
    destroy: () => host.replaceChildren(),
  };
}

/** The message of each key that is pressed with Ctrl or Command. @type {Record<string, "save"|"undo"|"redo"|"copy"|"cut"|"paste"|"duplicate">} */
export const CHORDS = { s: "save", z: "undo", y: "redo", c: "copy", x: "cut", v: "paste", d: "duplicate" };

/** Return the message for a key in design mode, or null. @param {{key: string, mod: boolean, shift: boolean}} pressed @param {{typing: boolean, selecting: boolean}} where true if the focus is in a field, and if text is selected */
export function kindOfKey({ key, mod, shift }, { typing, selecting }) {
  const kind = mod ? (key === "z" && shift ? "redo" : CHORDS[key]) : key === "delete" || key === "backspace" ? "delete" : undefined;
  return (typing && kind !== "save") || (kind === "copy" && selecting) ? undefined : kind;
}

/** Handle the keys of design mode; keys typed into a field belong to the field. @param {HTMLElement} root @param {SendToDesigner} send */
export function designKeys(root, send) {
  const onKey = (/** @type {KeyboardEvent} */ event) => {
    if (event.defaultPrevented) return;
    const target = targetOf(event), typing = Boolean(target?.closest("input:not([type=radio]):not([type=checkbox]), textarea, select, [contenteditable]"));
    const kind = kindOfKey({ key: event.key.toLowerCase(), mod: event.ctrlKey || event.metaKey, shift: event.shiftKey }, { typing, selecting: String(document.getSelection()) !== "" });
    if (!kind) return;
    event.preventDefault();
    event.stopPropagation();
    flushForms(target);
    send(kind);
  };
  root.addEventListener("keydown", onKey);
  return () => root.removeEventListener("keydown", onKey);
}
