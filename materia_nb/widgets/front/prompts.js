/** A prompt, part by part; one that waits can be changed for this turn. */
import { h, clear, button, setText } from "./dom.js";

export function promptPart(host, send) {
  const words = h("p", { class: "mnb-p mnb-dim" });
  const list = h("div", { class: "mnb-col" });
  const apply = button("Apply to this turn", "ask with this wording, this time only", () => {
    const layers = changed();
    if (Object.keys(layers).length) send("edit_prompt", { layers });
  }, { class: "mnb-b mnb-main" });
  const revert = button("Revert", "the prompt as it is", () => {
    key = null;
    update(data);
  });
  const row = h("div", { class: "mnb-row mnb-stick", hidden: true }, h("span", { class: "mnb-t-now" }, "● changed, not applied"), apply, revert);
  host.append(words, list, row);
  let data = {}, key = null, fields = [];
  const changed = () => Object.fromEntries(fields.filter((one) => one.area && one.area.value !== one.text).map((one) => [one.name, one.area.value]));
  const mark = () => (row.hidden = !Object.keys(changed()).length);
  const update = (now) => {
    const kept = key === now.key ? changed() : {};
    const told = JSON.stringify([now.layers, now.edit]);
    data = now;
    setText(words, now.words);
    if (key === now.key && list.dataset.told === told) return;
    key = now.key;
    list.dataset.told = told;
    const open = new Map([...list.querySelectorAll("details")].map((one) => [one.dataset.fold, one.open]));
    clear(list);
    fields = now.layers.map((layer) => {
      const area = now.edit ? h("textarea", { class: "mnb-in mnb-code", rows: String(promptRows(layer.text)), "aria-label": layer.heading }) : null;
      if (area) {
        area.value = kept[layer.name] ?? layer.text;
        area.addEventListener("input", mark);
      }
      const box = h("details", { class: "mnb-fold", "data-fold": layer.name }, h("summary", {}, layer.heading), area || h("pre", { class: "mnb-pre", tabindex: "0" }, layer.text));
      box.open = open.get(layer.name) ?? layer.open;
      list.append(box);
      return { ...layer, area };
    });
    mark();
  };
  return {
    update,
    unsent: () => (host.isConnected && Object.keys(changed()).length ? [{ words: "the changed prompt", message: { kind: "edit_prompt", layers: changed() } }] : []),
  };
}

function promptRows(text) {
  const filled = text.split("\n").reduce((sum, line) => sum + 1 + Math.floor(line.length / 56), 0);
  return Math.min(14, Math.max(2, filled));
}
