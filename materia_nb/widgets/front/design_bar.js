/** The bar of design mode: what the design is called, what is wrong, undo and redo, casting and saving; and what was said last. */
import { h, button, setEnabled, isEnabled, setText } from "./dom.js";

/**
 * @param {HTMLElement} host
 * @param {(kind: string, values?: object) => void} send
 */
export function designBarPart(host, send) {
  const act = (kind, values = {}) => {
    designFlush(host);
    send(kind, values);
  };
  const press = (words, title, kind, attrs) => {
    const made = button(words, title, () => isEnabled(made) && act(kind), attrs);
    return made;
  };
  const name = h("b", { class: "mnb-cut mnb-d-title" });
  const chips = h("span", { class: "mnb-d-states" });
  const words = h("span", { class: "mnb-dim mnb-cut mnb-d-said", role: "status" });
  const undo = press("↶ Undo", "take the last step back (Ctrl-Z)", "undo");
  const redo = press("↷ Redo", "do it again (Ctrl-Y)", "redo");
  const cast = button("Cast it", "begin a cast of it as it is now, saved or not", () => ask("Cast it for", "what is asked for", (request) => request && act("cast", { request })));
  const save = press("Save", "save it", "save", { class: "mnb-b mnb-main" });
  const saveAs = button("Save as…", "save a copy under another name", () => ask("Save as", "a file name that ends with .json, or: this notebook", (to) => to && act("save", { to })));
  const reload = button("Reload", "take what is on disk now; Undo brings these edits back", () => act("reload"));
  const line = h("div", { class: "mnb-d-ask", hidden: true });
  host.append(name, chips, words, h("span", { class: "mnb-space" }), undo, redo, cast, reload, saveAs, save, line);

  let asking = null;
  const close = () => {
    asking = null;
    line.hidden = true;
    line.replaceChildren();
  };
  /** Ask for a line of text under the bar. */
  const ask = (what, shape, done) => {
    const field = h("input", { class: "mnb-in", placeholder: shape, "aria-label": `${what}: ${shape}`, autocomplete: "off" });
    const before = document.activeElement;
    const end = (ok) => {
      if (line.hidden || !field.isConnected) return;
      const typed = field.value.trim();
      close();
      before?.focus?.();
      if (ok) done(typed);
    };
    field.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key !== "Enter" && event.key !== "Escape") return;
      event.preventDefault(); // or the button that the focus goes back to is pressed by the same key
      end(event.key === "Enter");
    });
    asking = "line";
    line.dataset.tone = "";
    line.replaceChildren(h("span", {}, what), field, button("OK", what, () => end(true), { class: "mnb-b mnb-main" }), button("Cancel", "leave it", () => end(false)));
    line.hidden = false;
    field.focus();
  };
  let told = "";
  return {
    ask,
    update(slice) {
      const bar = slice.bar;
      if (!bar) return;
      setText(name, bar.name);
      name.title = bar.name;
      const state = bar.changed ? "not saved" : bar.steps ? "saved" : bar.fresh ? "new" : "as in its file";
      const count = (number, one) => `${number} ${one}${number === 1 ? "" : "s"}`;
      chips.replaceChildren(
        h("span", { class: "mnb-d-state", "data-tone": bar.changed ? "now" : "" }, state),
        bar.problems ? h("span", { class: "mnb-d-state", "data-tone": "bad" }, `✖ ${count(bar.problems, "problem")}`) : h("span", { class: "mnb-d-state", "data-tone": "good" }, "✓ can be cast"),
        bar.hints ? h("span", { class: "mnb-d-state" }, `○ ${count(bar.hints, "hint")}`) : "",
      );
      setEnabled(undo, bar.undo !== null, "nothing to undo");
      setEnabled(redo, bar.redo !== null, "nothing to do again");
      if (bar.undo !== null) undo.title = `take back: ${bar.undo} (Ctrl-Z)`;
      if (bar.redo !== null) redo.title = `do again: ${bar.redo} (Ctrl-Y)`;
      save.title = `save in ${bar.home}${bar.why ? ` (${bar.why})` : ""} (Ctrl-S)`;
      setText(words, bar.note.sign === "alert" ? "" : bar.note.words);
      words.title = bar.note.words;
      const now = JSON.stringify([bar.note, bar.question]);
      if (now === told) return;
      told = now;
      if (bar.question) {
        asking = "question";
        line.dataset.tone = "now";
        line.replaceChildren(
          h("span", { role: "alert" }, bar.question.words),
          ...bar.question.choices.map((one, number) => button(one, one, () => act("answer", { number }), { class: number ? "mnb-b" : "mnb-b mnb-main" })),
          button("Leave it", "do nothing", () => act("answer", { number: -1 })),
        );
        line.hidden = false;
      } else if (bar.note.sign === "alert" && bar.note.words) {
        asking = "alert";
        line.dataset.tone = "bad";
        line.replaceChildren(h("span", { role: "alert" }, `✖ ${bar.note.words}`), button("×", "take this message away", close, { class: "mnb-x", "aria-label": "take this message away" }));
        line.hidden = false;
      } else if (asking !== "line") close();
    },
    destroy() {
      host.replaceChildren();
    },
  };
}

/** Let every form of the surface send what was typed and not sent yet. */
export function designFlush(node) {
  node.closest(".mnb-surface")?.dispatchEvent(new CustomEvent("mnb-flush"));
}

/**
 * The keys of design mode; a key that is typed into a field is the field's.
 * @param {HTMLElement} root
 * @param {(kind: string, values?: object) => void} send
 */
export function designKeys(root, send) {
  const heard = (event) => {
    if (event.defaultPrevented) return;
    const mod = event.ctrlKey || event.metaKey;
    const typing = event.target.closest?.("input:not([type=radio]):not([type=checkbox]), textarea, select, [contenteditable]");
    const key = event.key.toLowerCase();
    let kind = null;
    if (mod && key === "s") kind = "save";
    else if (typing) return;
    else if (mod && key === "z") kind = event.shiftKey ? "redo" : "undo";
    else if (mod && key === "y") kind = "redo";
    else if (mod && key === "c" && !String(document.getSelection())) kind = "copy";
    else if (mod && key === "x") kind = "cut";
    else if (mod && key === "v") kind = "paste";
    else if (mod && key === "d") kind = "duplicate";
    else if (key === "delete" || key === "backspace") kind = "delete";
    if (!kind) return;
    event.preventDefault();
    event.stopPropagation();
    designFlush(event.target);
    send(kind);
  };
  root.addEventListener("keydown", heard);
  return () => root.removeEventListener("keydown", heard);
}
