/** A prompt in parts; the prompt of a waiting turn can be edited. */
import { actButton, h, button, isNew, setText } from "./dom.js";
import { rowsFor } from "./words.js";

/** @param {HTMLElement} host @param {PanelSender} send @returns {Part} */
export function promptPart(host, send) {
  const summary = h("p", { class: "mnb-p mnb-dim" });
  const list = h("div", { class: "mnb-col" });
  const apply = actButton("Apply to this turn", "send this wording, for this turn only", () => Object.keys(changed()).length && send("edit_prompt", { layers: changed() }), { class: "mnb-b mnb-main" });
  const revert = button("Revert", "discard the changes", () => data && draw(data, {}));
  const row = h("div", { class: "mnb-row mnb-stick", hidden: true }, h("span", { class: "mnb-t-now" }, "● changed, not applied"), apply, revert);
  host.append(summary, list, row);
  /** @type {Prompt|null} */
  let data = null;
  /** @type {{name: string, text: string, area: HTMLTextAreaElement}[]} */
  let fields = [];
  const changed = () => Object.fromEntries(fields.filter((field) => field.area.value !== field.text).map((field) => [field.name, field.area.value]));
  const mark = () => (row.hidden = !Object.keys(changed()).length);
  /** @param {Prompt} now @param {Record<string, string>} typed the typed texts, by the names of the layers */
  const draw = (now, typed) => {
    const open = new Map([...list.querySelectorAll("details")].map((details) => [details.dataset.fold, details.open]));
    fields = [];
    list.replaceChildren(...now.layers.map(({ name, heading, text, open: opens }) => {
      const box = h("details", { class: "mnb-fold", "data-fold": name }, h("summary", {}, heading));
      if (now.edit) {
        const area = h("textarea", { class: "mnb-in mnb-code", rows: Math.min(14, Math.max(2, rowsFor(text))), "aria-label": heading, value: typed[name] ?? text, oninput: mark });
        fields.push({ name, text, area });
        box.append(area);
      } else box.append(h("pre", { class: "mnb-pre", tabindex: "0" }, text));
      box.open = open.get(name) ?? opens;
      return box;
    }));
    mark();
  };
  return {
    /** @param {Prompt} now */
    update(now) {
      const typed = data?.key === now.key ? changed() : {};
      data = now;
      setText(summary, now.words);
      if (isNew(list, [now.key, now.layers, now.edit])) draw(now, typed);
    },
    unsent: () => (host.isConnected && Object.keys(changed()).length ? [{ words: "the changed prompt", message: { kind: "edit_prompt", layers: changed() } }] : []),
  };
}
