/** The tab Answer: the failure, pending approvals, the agent's live text, and the form for a person's answer. */
import { actButton, h, append, button, focused, isEnabled, isNew, isTyping, onKeys, refill, setText, setAttr, setEnabled } from "./dom.js";
import { drawBlocks } from "./blocks.js";
import { checkedField } from "./checking.js";
import { rowsOf } from "./words.js";
import { failureBox } from "./failed.js";
import { chooseCast } from "./compare.js";

const PLAIN = { class: "mnb-b" }, MAIN = { class: "mnb-b mnb-main" }, YES = { class: "mnb-b mnb-yes" }, NO = { class: "mnb-b mnb-not" };

/** @param {HTMLElement} host @param {PanelSender} send @param {Shell} shell @returns {Part} */
export function answerPart(host, send, shell) {
  const top = h("div", {}), bottom = h("div", {});
  const failed = failureBox(send, shell);
  const next = h("div", { class: "mnb-row mnb-next", role: "group", "aria-label": "what can come next" });
  const asks = askingBox(send), live = liveBox(send), form = formBox(send), correct = correctBox(send);
  const enter = h("div", { class: "mnb-box", hidden: true });
  host.append(failed.node, top, next, asks.node, form.node, enter, live.node, correct.node, bottom);
  /** @type {Record<string, () => void>} actions that do more than send their name */
  const acts = {
    compare: () => chooseCast(send, next),
    label: () => shell.askLine("name of this cast", "", (text) => text && send("label", { text })),
  };
  return {
    update(data) {
      drawBlocks(top, data.top, send);
      failed.update(data.failed ?? null);
      /** @type {{words: string, title: string, kind: string}[]} */
      const options = data.next ?? [];
      if (isNew(next, options)) refill(next, options.map((option) => (acts[option.kind] ? button : actButton)(option.words, option.title, acts[option.kind] ?? (() => send(/** @type {Plain} */ (option.kind))), { class: "mnb-b mnb-quiet" })));
      next.hidden = !options.length;
      asks.update(data.asks ?? null, data.busy);
      form.update(data.form ?? null, data.key, data.busy);
      live.update(data.live ?? {});
      enter.hidden = !data.enter;
      if (data.enter && isNew(enter, data.enter)) refill(enter, h("p", { class: "mnb-p" }, data.enter.words), data.enter.button && actButton(data.enter.button, "enter the socket without running it", () => send("enter")));
      correct.update(data.correct ?? null);
      drawBlocks(bottom, data.blocks, send);
    },
    unsent: () => [...form.unsent(), ...failed.unsent()],
  };
}

/** Focus the first field of a question that has just appeared, if the panel has the focus and the user is not typing or in a menu. @param {HTMLElement} node */
function takeFocus(node) {
  const surface = node.closest(".mnb-surface"), at = surface && focused(surface);
  if (at && !isTyping(at) && !at.closest(".mnb-menu")) /** @type {HTMLElement|null} */ (node.querySelector("textarea, input"))?.focus({ preventScroll: true });
}

/** Tool calls or a command that wait for approval, with the reason that the model gave. @param {PanelSender} send */
function askingBox(send) {
  const heading = h("h4", { class: "mnb-h" }), reasonGiven = h("blockquote", { class: "mnb-said" }), blocks = h("div", {});
  const reason = h("textarea", { class: "mnb-in", rows: "1" }), buttons = h("div", { class: "mnb-row" });
  const node = h("div", { class: "mnb-box mnb-box-now", role: "group", "aria-label": "asks for approval", hidden: true }, heading, reasonGiven, blocks, reason, buttons);
  let key = "";
  const allow = (/** @type {string} */ text, /** @type {string} */ title, always = false, style = MAIN) => actButton(text, title, () => send("allow", { always }), style);
  const deny = (/** @type {string} */ title) => actButton("Deny", title, () => send("deny", { reason: reason.value }));
  const take = (/** @type {string} */ text, /** @type {boolean} */ satisfied, style = YES) => actButton(text, "continue as if the output had this verdict", () => send("decide", { satisfied }), style);
  const forCalls = () => [
    allow("Allow once", "run exactly this"),
    allow("Allow always", "run these calls, and run later calls of the same tools in this cast without asking", true, PLAIN),
    deny("the agent continues without these calls and gets the text as the reason"),
  ];
  /** @param {Asks} asks @returns {Child} */
  const forHold = (asks) => {
    const target = h("select", { class: "mnb-in", "aria-label": "continue at" }, asks.sockets.map(([id, name]) => h("option", { value: id }, name)));
    return [
      asks.approve && allow("Approve once", "the agent may run exactly this command once"),
      asks.deny && deny("the agent may not run this command and gets the text as the reason"),
      actButton("Answer", "the agent continues with this, in the same conversation", () => send("answer", { text: reason.value })),
      take("✓ take as satisfied", true),
      take("✗ take as not satisfied", false, NO),
      h("span", { class: "mnb-row" }, target, actButton("Go there", "accept the output and continue at this socket, regardless of the edges", () => send("decide", { target: target.value }))),
    ];
  };
  return {
    node,
    /** @param {Asks|null} asks @param {boolean} busy */
    update(asks, busy) {
      const appears = node.hidden;
      node.hidden = !asks || busy;
      if (asks?.key !== key) reason.value = "";
      key = asks?.key ?? "";
      if (!asks) return;
      if (appears && !node.hidden) takeFocus(node);
      setText(heading, asks.words);
      reasonGiven.hidden = !asks.said;
      setText(reasonGiven, asks.said);
      drawBlocks(blocks, asks.blocks, send);
      const hold = asks.is === "hold";
      setAttr(reason, "placeholder", hold ? "your answer, or the reason for a denial" : "the reason for a denial, for the agent");
      setAttr(reason, "aria-label", reason.placeholder);
      if (isNew(buttons, [asks.is, asks.approve, asks.deny, asks.sockets])) refill(buttons, hold ? forHold(asks) : forCalls());
    },
  };
}

/** The agent's live text; the view follows the end unless the reader has scrolled up. @param {PanelSender} send */
function liveBox(send) {
  const transcript = h("pre", { class: "mnb-pre mnb-live", tabindex: "0", "aria-label": "what the agent says" });
  const calls = h("div", {}), notes = h("div", {});
  const node = h("div", { hidden: true }, h("h4", { class: "mnb-h" }, "live output"), calls, transcript, notes);
  return {
    node,
    /** @param {{words?: string, cut?: boolean, calls?: Blocks, notes?: string[]}} live */
    update(live) {
      node.hidden = !(live.words || live.calls?.length || live.notes?.length);
      if (node.hidden) return;
      const atEnd = transcript.scrollHeight - transcript.scrollTop - transcript.clientHeight < 24;
      transcript.hidden = !live.words;
      setText(transcript, (live.cut ? "… " : "") + (live.words || ""));
      if (atEnd) transcript.scrollTop = transcript.scrollHeight;
      drawBlocks(calls, live.calls, send);
      drawBlocks(notes, live.notes?.map((text) => ({ is: "line", text, tone: "quiet" })), send);
    },
  };
}

/** The form for a person's answer: two verdict buttons with a reason, a table of items, plain text, or JSON. @param {PanelSender} send */
function formBox(send) {
  const question = h("div", { class: "mnb-ask" }), before = h("div", {}), body = h("div", { class: "mnb-contents" });
  const node = h("div", { class: "mnb-col", role: "group", "aria-label": "your answer", hidden: true }, question, before, body);
  let key = "";
  /** @type {HTMLTextAreaElement|null} */
  let text = null;
  const make = (/** @type {Form} */ form, /** @type {string} */ typed) => {
    refill(body);
    if (form.draft) {
      const wish = h("textarea", { class: "mnb-in", rows: "2", placeholder: "what to change", "aria-label": "what to change" });
      append(body, wish, h("div", { class: "mnb-row" },
        actButton("Accept", "accept the draft and ask for the final result", () => send("finalize"), MAIN),
        actButton("Refine", "ask for a changed draft", () => wish.value.trim() && send("refine", { text: wish.value }))));
    }
    const field = (text = h("textarea", { class: "mnb-in mnb-code mnb-grow", rows: "2", placeholder: form.text ? "the answer" : "the answer, as JSON", "aria-label": "the answer", value: typed }));
    const go = actButton("Send", "answer in place of the agent", () => send("reply", { text: field.value }), MAIN);
    const may = (/** @type {boolean} */ fine) => setEnabled(go, fine, "write a valid answer first");
    may(false);
    const check = checkedField(field, send, "reply", "this answer is valid", may);
    onKeys(field, { Enter: (event) => ((event.ctrlKey || event.metaKey) && isEnabled(go) ? go.click() : false) });
    const jsonForm = h("div", { class: "mnb-col" }, field, check.host, h("div", { class: "mnb-row mnb-send" }, go));
    const quick = form.items ? itemsForm(send, form) : form.verdict ? verdictForm(send, form.verdict) : null;
    if (quick) {
      jsonForm.hidden = true;
      const json = button("JSON", "write the whole answer as JSON", () => {
        jsonForm.hidden = !jsonForm.hidden;
        setAttr(json, "aria-expanded", String(!jsonForm.hidden));
        if (!jsonForm.hidden) field.focus();
      }, { "aria-expanded": "false" });
      quick.row.append(json);
    }
    append(body, quick?.node, jsonForm);
  };
  return {
    node,
    /** @param {Form|null} form @param {string} now @param {boolean} busy */
    update(form, now, busy) {
      const hides = !form || busy, changes = form && isNew(body, [now, form.text, form.draft, form.items, form.verdict, form.wanted]), appears = changes || node.hidden;
      // The focus waits in the bar while the form has no place for it.
      if (focused(node) && (hides || changes)) /** @type {HTMLElement|null|undefined} */ (node.closest(".mnb-surface")?.querySelector(".mnb-pill"))?.focus({ preventScroll: true });
      node.hidden = hides;
      if (!form) return;
      if (changes) make(form, (key === now && text?.value) || "");
      if (appears && !hides) takeFocus(node);
      key = now;
      drawBlocks(question, [{ is: "line", text: form.words, tone: form.person ? "now" : "" }, ...(form.verdict ? [{ is: "line", text: `✓ leads to ${form.verdict.yes}; ✗ leads to ${form.verdict.no}` }] : [])], send);
      const head = (/** @type {string} */ title) => ({ is: "head", text: title, small: true });
      drawBlocks(before, [
        ...(form.previous ? [head(form.previous.who === "its draft" ? "the draft" : `previous output, ${form.previous.who}`), { is: "pre", text: form.previous.text + (form.previous.cut ? "…" : "") }] : []),
        ...(form.task.length ? [{ is: "facts", rows: form.task }] : []),
        ...(form.wish ? [head("current request"), { is: "pre", text: form.wish }] : []),
        ...(form.text || !form.wanted.length ? [] : [{ is: "fold", title: "required fields", inside: [{ is: "table", headers: ["field", "requirement"], rows: form.wanted }], open: false }]),
      ], send);
    },
    unsent: () => (!node.hidden && text?.value.trim() ? [{ words: "the answer", message: { kind: "reply", text: text.value } }] : []),
  };
}

/** @param {PanelSender} send @param {{yes: string, no: string}} verdict */
function verdictForm(send, { yes, no }) {
  const reason = h("textarea", { class: "mnb-in", rows: "2", placeholder: "the reason, for the next agent", "aria-label": "the reason" });
  const say = (/** @type {boolean} */ satisfied) => () => send("verdict", { satisfied, reason: reason.value });
  const row = h("div", { class: "mnb-row" }, actButton("✓ satisfied", `goes to ${yes}`, say(true), YES), actButton("✗ not satisfied", `goes to ${no}, with the reason`, say(false), NO));
  return { node: h("div", { class: "mnb-col mnb-send" }, reason, row), row };
}

/** A small table for typing work items; Enter in the last row adds another row. @param {PanelSender} send @param {Form} form */
function itemsForm(send, form) {
  const list = h("div", { class: "mnb-col" }), note = h("div", { role: "status" });
  /** @typedef {{name: HTMLInputElement, about: HTMLInputElement|HTMLTextAreaElement, node: HTMLElement}} Row */
  /** @type {Row[]} */
  const rows = [];
  const take = (/** @type {Row} */ row) => {
    rows.splice(rows.indexOf(row), 1);
    row.node.remove();
  };
  const add = (title = "", context = "") => {
    const name = h("input", { class: "mnb-in", placeholder: "title", value: title, "aria-label": `title of item ${rows.length + 1}` });
    const about = h(context.includes("\n") ? "textarea" : "input", { class: "mnb-in", placeholder: "what to do", value: context, "aria-label": `context of item ${rows.length + 1}` });
    const node = h("div", { class: "mnb-itemrow" }, name, about, button("×", "remove this item", () => take(row), { class: "mnb-x", "aria-label": "remove this item" }));
    const row = { name, about, node };
    onKeys(about, { Enter: (event) => (event.ctrlKey || event.metaKey || rows.at(-1) !== row ? false : add().name.focus()) });
    rows.push(row);
    list.append(node);
    return row;
  };
  add();
  list.addEventListener("paste", (event) => {
    const text = event.clipboardData?.getData("text/plain") || "", last = rows.at(-1);
    if (!text.includes("\t") && !text.trim().includes("\n")) return;
    event.preventDefault();
    if (last && !last.name.value && !last.about.value) take(last);
    for (const [title, context] of rowsOf(text)) add(title, context);
  });
  const go = (/** @type {boolean|null} */ satisfied) => () => {
    /** @type {[string, string, null][]} */
    const all = rows.filter(({ name, about }) => name.value || about.value).map(({ name, about }) => [name.value, about.value, null]);
    const blank = all.some(([title, context]) => !title.trim() || !context.trim());
    setText(note, blank ? "✖ every item needs a title and a context" : "");
    if (!blank) send("items_answer", { rows: all, reason: "", satisfied });
  };
  const verdict = form.wanted.some(([name]) => name === "satisfied");
  const plain = actButton("Send these items", "answer with these work items", go(null), MAIN);
  const row = h("div", { class: "mnb-row mnb-send" },
    verdict ? [actButton("✓ Send, satisfied", "send these items", go(true), YES), actButton("✗ Send, not satisfied", "send these items", go(false), NO)] : plain,
    button("Add", "another item", () => add().name.focus()));
  const node = h("div", { class: "mnb-col" }, h("div", { class: "mnb-dim" }, "You can paste rows from a spreadsheet."), list, note, row);
  if (!verdict) onKeys(node, { Enter: (event) => (event.ctrlKey || event.metaKey ? plain.click() : false) });
  return { node, row };
}

/** The output of the last step, to be corrected and routed again. @param {PanelSender} send */
function correctBox(send) {
  const summary = h("summary", {});
  const text = h("textarea", { class: "mnb-in mnb-code", rows: "5", "aria-label": "the corrected output" });
  const go = actButton("Use this output", "decide the step again with this output; the original is kept", () => send("edit_output", { text: text.value }), MAIN);
  const may = (/** @type {boolean} */ fine) => setEnabled(go, fine && text.value !== original && !missing, "change something first");
  const check = checkedField(text, send, "correction", "this output is valid", may);
  const reset = () => {
    text.value = original;
    check.clear();
    may(false);
  };
  onKeys(text, { Enter: (event) => ((event.ctrlKey || event.metaKey) && isEnabled(go) ? go.click() : false) });
  const node = h("details", { class: "mnb-fold", hidden: true }, summary, text, check.host, h("div", { class: "mnb-row" }, go, button("Revert", "discard the changes", reset)));
  let key = "", original = "", missing = false;
  node.addEventListener("toggle", async () => {
    if (!node.open) return;
    text.focus();
    if (!missing) return;
    const output = await send.ask("last_output", {});
    if (!missing || output.key !== key) return;
    [missing, original] = [false, output.text];
    reset();
  });
  return {
    node,
    /** @param {Correction|null} data */
    update(data) {
      node.hidden = !data;
      if (!data) return;
      setText(summary, data.words);
      if (data.key === key) return;
      [key, original, missing, node.open] = [data.key, data.text ?? "", data.text === null, false];
      reset();
    },
  };
}
