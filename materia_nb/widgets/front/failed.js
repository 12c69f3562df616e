/** Where a cast failed: why, and the ways on, each a row with one button; what must be written opens below its row. */
import { h, clear, button, setAttr, setEnabled, isEnabled } from "./dom.js";
import { drawBlocks } from "./blocks.js";
import { checkedField } from "./checking.js";

/**
 * @param {(kind: string, values?: object) => void} send
 * @param {{correct: () => void}} opens what stands elsewhere and is opened from here
 */
export function failedBox(send, opens) {
  const told = h("div", {});
  const rows = h("div", { class: "mnb-ways", role: "group", "aria-label": "ways on" });
  const more = h("div", { class: "mnb-col" });
  const node = h("div", { class: "mnb-col", hidden: true }, told, rows, more);
  let made = "", written = null;
  const plainAct = (one, first) => [button(one.words.replace(/ .*retry$/, " it and retry"), one.does, () => send(one.name), { class: first ? "mnb-b mnb-main" : "mnb-b" }), null];
  const opening = (words, title, body, first) => {
    body.hidden = true;
    const open = button(words, title, () => {
      body.hidden = !body.hidden;
      setAttr(open, "aria-expanded", String(!body.hidden));
      if (!body.hidden) {
        body.querySelector("textarea, input").focus();
        body.scrollIntoView({ block: "nearest" });
      }
    }, { "aria-expanded": "false", class: first ? "mnb-b mnb-main" : "mnb-b" });
    return [open, body];
  };
  const make = {
    answer: (one, first, data, pins) => {
      const text = h("textarea", { class: "mnb-in mnb-code", rows: "4", placeholder: `${data.says}, ${data.form}`, "aria-label": "the answer by hand" });
      const go = button("Send", "it is recorded as yours, and the cast goes on from it", () => isEnabled(go) && send("by_hand", { text: text.value }), { class: "mnb-b mnb-main" });
      const pin = pins && button("Pin and go on", "it answers from now on, in this cast", () => isEnabled(pin) && send("pin_text", { socket: data.socket, text: text.value }));
      const may = (fine) => [go, pin].filter(Boolean).forEach((node) => setEnabled(node, fine, "write an answer that would be taken"));
      may(false);
      const check = checkedField(text, send, () => "by_hand", "this answer would be taken", may);
      written = { text, socket: data.socket };
      return opening("Write…", one.does, h("div", { class: "mnb-col" }, text, check.host, h("div", { class: "mnb-row" }, go, pin)), first);
    },
    pin: (one, first, data) => {
      const text = h("textarea", { class: "mnb-in mnb-code", rows: "4", placeholder: `${data.says}, ${data.form}`, "aria-label": "the pinned answer" });
      const go = button("Pin and go on", one.does, () => text.value.trim() && send("pin_text", { socket: data.socket, text: text.value }), { class: "mnb-b mnb-main" });
      return opening("Write…", one.does, h("div", { class: "mnb-col" }, text, h("div", { class: "mnb-row" }, go)), first);
    },
    skip: (one, first) => {
      const note = h("input", { class: "mnb-in", placeholder: "why; the journal keeps it", "aria-label": "why it is skipped" });
      const go = button(one.name === "skip_item" ? "Pass over" : "Skip it", one.does, () => isEnabled(go) && send("skip", { note: note.value, item: one.name === "skip_item" }), { class: "mnb-b mnb-main" });
      setEnabled(go, false, "say in a few words why");
      note.addEventListener("input", () => setEnabled(go, Boolean(note.value.trim()), "say in a few words why"));
      note.addEventListener("keydown", (event) => event.key === "Enter" && go.click());
      return opening(one.name === "skip_item" ? "Pass over…" : "Skip…", one.does, h("div", { class: "mnb-row mnb-nowrap" }, note, go), first);
    },
    skip_item: (one, first) => make.skip(one, first),
    budget: (one, first, data) => {
      const tokens = h("input", { class: "mnb-in mnb-num", value: data.budget, "aria-label": "budget of this cast: tokens, or a cost as in 2.50 USD; empty for none" });
      return [h("span", { class: "mnb-row mnb-nowrap" }, tokens, button("Raise it", one.does, () => send("raise_budget", { budget: tokens.value }), { class: first ? "mnb-b mnb-main" : "mnb-b" })), null];
    },
    correct: (one, first) => [button("Correct…", one.does, () => opens.correct(), { class: first ? "mnb-b mnb-main" : "mnb-b" }), null],
    reword: (one) => [button("Open it", one.does, () => send("tab", { tab: "prompt" })), null],
  };
  return {
    node,
    update(data) {
      node.hidden = !data;
      if (!data) {
        made = "";
        written = null;
        return;
      }
      drawBlocks(told, data.blocks, send);
      drawBlocks(more, data.more, send);
      const wanted = JSON.stringify([data.key, data.offers, data.form]);
      if (wanted === made) return;
      made = wanted;
      written = null;
      clear(rows);
      // What answers it once and what answers it from now on are written in one place.
      const answers = data.offers.some((one) => one.name === "answer");
      const pins = data.offers.some((one) => one.name === "pin");
      const shown = data.offers.filter((one) => one.name !== "pin" || !answers);
      shown.forEach((one, place) => {
        const [act, body] = (make[one.name] || plainAct)(one, place === 0, data, pins);
        rows.append(h("div", { class: "mnb-way" }, h("div", {}, h("div", {}, one.words), h("div", { class: "mnb-dim mnb-fine" }, one.does)), act), ...(body ? [body] : []));
      });
    },
    unsent: () => (written && written.text.value.trim() && !node.hidden ? [{ words: "the answer by hand", message: { kind: "by_hand", text: written.text.value } }] : []),
  };
}
