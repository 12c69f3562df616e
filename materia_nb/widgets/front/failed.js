/** The failure of a cast: the reason, and a row with a button for each remedy; a form opens below its row. */
import { actButton, h, button, isNew, onKeys, refill, setAttr, setEnabled } from "./dom.js";
import { drawBlocks } from "./blocks.js";
import { checkedField } from "./checking.js";
import { continues } from "./bar.js";

/** @param {PanelSender} send @param {Shell} shell */
export function failureBox(send, shell) {
  const continueCast = continues(send, shell);
  const why = h("div", {}), more = h("div", { class: "mnb-col" });
  const rows = h("div", { class: "mnb-ways", role: "group", "aria-label": "options to continue" });
  const node = h("div", { class: "mnb-col mnb-failure", hidden: true }, why, more, rows);
  /** @type {HTMLTextAreaElement|null} the field for an answer by hand, which initially contains the refused answer */
  let written = null;
  let refused = "";
  /** @param {Remedy} offer @param {HTMLElement} body @param {Attributes} style @returns {RemedyControls} */
  const opening = (offer, body, style) => {
    body.hidden = true;
    const open = button(`${offer.words}…`, offer.does, () => {
      body.hidden = !body.hidden;
      setAttr(open, "aria-expanded", String(!body.hidden));
      if (body.hidden) return;
      /** @type {HTMLElement|null} */ (body.querySelector("textarea, input"))?.focus();
      body.scrollIntoView({ block: "nearest" });
    }, { "aria-expanded": "false", ...style });
    return [open, body];
  };
  const main = { class: "mnb-b mnb-main" };
  /** @param {Failure} data @param {string} label */
  const textField = (data, label) => h("textarea", { class: "mnb-in mnb-code", rows: "4", placeholder: `${data.says}, ${data.form}`, "aria-label": label });
  /** @param {HTMLTextAreaElement} text @param {Failure} data @param {string} title @param {Attributes} [style] */
  const pinButton = (text, data, title, style) => actButton("Pin and continue", title, () => text.value.trim() && send("pin_text", { socket: data.socket, text: text.value }), style);
  /** Creates the controls of each remedy; `style` has the attributes of its button. @type {Record<string, (offer: Remedy, style: Attributes, data: Failure, pins: boolean) => RemedyControls>} */
  const make = {
    answer(offer, style, data, pins) {
      const text = textField(data, "the answer by hand");
      const go = actButton("Send", "record this answer as yours and continue the cast", () => send("by_hand", { text: text.value }), main);
      const buttons = pins ? [go, pinButton(text, data, "use this answer from now on, in this cast")] : [go];
      const may = (/** @type {boolean} */ fine) => buttons.forEach((control) => setEnabled(control, fine, "write a valid answer first"));
      may(false);
      const check = checkedField(text, send, "by_hand", "this answer is valid", may);
      text.value = refused = data.refused;
      written = text;
      return opening(offer, h("div", { class: "mnb-col" }, text, check.host, h("div", { class: "mnb-row" }, buttons)), style);
    },
    pin(offer, style, data) {
      const text = textField(data, "the pinned answer");
      return opening(offer, h("div", { class: "mnb-col" }, text, h("div", { class: "mnb-row" }, pinButton(text, data, offer.does, main))), style);
    },
    skip(offer, style) {
      const item = offer.name === "skip_item";
      const note = h("input", { class: "mnb-in", placeholder: "reason, saved in the journal", "aria-label": "reason for skipping" });
      const go = actButton(item ? "Skip the item" : "Skip it", offer.does, () => send("skip", { note: note.value, item }), main);
      const may = () => setEnabled(go, Boolean(note.value.trim()), "write a short reason first");
      may();
      note.addEventListener("input", may);
      onKeys(note, { Enter: () => go.click() });
      return opening(offer, h("div", { class: "mnb-row mnb-nowrap" }, note, go), style);
    },
    budget(offer, style, data) {
      const tokens = h("input", { class: "mnb-in mnb-num", value: data.budget, "aria-label": "budget of this cast: 20000 tokens, 2.50 USD, 60 seconds, 10 turns; empty for none" });
      return [h("span", { class: "mnb-row mnb-nowrap" }, tokens, actButton("Raise it", offer.does, () => send("raise_budget", { budget: tokens.value }), style))];
    },
    allow_folder: (offer, style) => [actButton("Allow", offer.does, () => send("allow_folder"), style)],
    apply_changes(offer, style) {
      const act = actButton("Apply it and retry", offer.does, () => continueCast(act, "Apply it and retry", "apply_changes"), style);
      return [act];
    },
    edit_prompt: (offer) => [button(offer.words, offer.does, () => send("tab", { tab: "prompt" }))],
  };
  make.skip_item = make.skip;
  return {
    node,
    /** @param {Failure|null} data */
    update(data) {
      node.hidden = !data;
      if (data) {
        drawBlocks(why, data.blocks, send, data.files);
        drawBlocks(more, data.more, send, data.files);
      } else written = null;
      if (!isNew(rows, data && [data.key, data.offers, data.form]) || !data) return;
      written = null;
      // Answering once and pinning an answer share one form.
      const has = (/** @type {string} */ name) => data.offers.some((offer) => offer.name === name);
      const offers = data.offers.filter((offer) => offer.name !== "pin" || !has("answer"));
      refill(rows, offers.map((offer) => {
        const [act, body] = make[offer.name](offer, offer.name === data.main ? main : {}, data, has("pin"));
        return [h("div", { class: "mnb-way" }, h("div", { class: "mnb-dim mnb-fine", title: offer.does }, offer.does), act), body];
      }));
    },
    unsent: () => (written?.value.trim() && written.value !== refused && !node.hidden ? [{ words: "the answer by hand", message: { kind: "by_hand", text: written.value } }] : []),
  };
}
