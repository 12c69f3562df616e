/** The present: why it failed, who asks for approval, what the agent says meanwhile, and the answer of a person. */
import { h, clear, button, setText, setAttr, setEnabled, isEnabled } from "./dom.js";
import { drawBlocks } from "./blocks.js";
import { checkedField } from "./checking.js";
import { rowsOf } from "./sheet.js";
import { failedBox } from "./failed.js";

/**
 * @param {HTMLElement} host
 * @param {object} send
 * @param {object} shell
 */
export function answerPart(host, send, shell) {
  const top = h("div", {});
  const failed = failedBox(send, { correct: () => correct.open() });
  const next = h("div", { class: "mnb-row", role: "group", "aria-label": "what can come next" });
  const asks = askingBox(send);
  const live = liveBox(send);
  const form = formBox(send);
  const enter = h("div", { class: "mnb-box", hidden: true });
  const correct = correctBox(send);
  const bottom = h("div", {});
  host.append(failed.node, top, next, asks.node, form.node, enter, live.node, correct.node, bottom);
  const NEXT = {
    compare: () => send("dock", { dock: "compare" }),
    label: () => shell.askLine("what this cast is called", "", (text) => text && send("label", { text })),
  };
  let madeNext = "";
  return {
    update(data) {
      drawBlocks(top, data.top, send);
      failed.update(data.failed);
      const wanted = JSON.stringify(data.next || []);
      if (wanted !== madeNext) {
        madeNext = wanted;
        clear(next).append(...(data.next || []).map((one) => button(one.words, one.title, NEXT[one.kind] || (() => send(one.kind)))));
      }
      next.hidden = !(data.next || []).length;
      asks.update(data.asks, data.busy);
      form.update(data.form, data.key, data.busy);
      live.update(data.live || {}, data.busy);
      enter.hidden = !data.enter;
      if (data.enter && enter.dataset.told !== data.enter.words) {
        enter.dataset.told = data.enter.words;
        clear(enter).append(h("p", { class: "mnb-p" }, data.enter.words), data.enter.button ? button(data.enter.button, "enter the socket without running it", () => send("enter")) : "");
      }
      correct.update(data.correct);
      drawBlocks(bottom, data.blocks, send);
    },
    unsent: () => [...form.unsent(), ...failed.unsent()],
  };
}

/** Calls or a command that wait for a person's leave, with the model's reason kept beside them. */
function askingBox(send) {
  const words = h("h4", { class: "mnb-h" });
  const said = h("blockquote", { class: "mnb-said" });
  const blocks = h("div", {});
  const reason = h("textarea", { class: "mnb-in", rows: "1" });
  const buttons = h("div", { class: "mnb-row" });
  const node = h("div", { class: "mnb-box mnb-box-now", role: "group", "aria-label": "asks for approval", hidden: true }, words, said, blocks, reason, buttons);
  let key = null, made = "";
  const seen = (values = {}) => ({ seen: key, ...values });
  return {
    node,
    update(asks, busy) {
      node.hidden = !asks || busy;
      if (!asks) {
        key = null;
        return;
      }
      if (asks.key !== key) {
        key = asks.key;
        reason.value = "";
      }
      setText(words, asks.words);
      said.hidden = !asks.said;
      setText(said, asks.said);
      drawBlocks(blocks, asks.blocks, send);
      const hold = asks.is === "hold";
      setAttr(reason, "placeholder", hold ? "the answer, or the reason of a refusal" : "the reason of a refusal, for the agent");
      setAttr(reason, "aria-label", reason.placeholder);
      const shape = JSON.stringify([asks.is, asks.consent, asks.deny, asks.sockets]);
      if (shape === made) return;
      made = shape;
      clear(buttons);
      if (!hold) {
        buttons.append(
          button("Allow once", "run exactly this", () => send("allow", seen()), { class: "mnb-b mnb-main" }),
          button("Allow always", "run it, and let later calls of the same tools run without asking, in this cast", () => send("allow", seen({ always: true }))),
          button("Deny", "the agent goes on without; the text is told as the reason", () => send("deny", seen({ reason: reason.value }))));
        return;
      }
      if (asks.consent) buttons.append(button("Approve once", "the agent may run exactly this command once", () => send("allow", seen()), { class: "mnb-b mnb-main" }));
      if (asks.deny) buttons.append(button("Deny", "the agent may not run it; the text is told as the reason", () => send("deny", seen({ reason: reason.value }))));
      const target = h("select", { class: "mnb-in", "aria-label": "go on at" }, asks.sockets.map(([id, name]) => h("option", { value: id }, name)));
      buttons.append(
        button("Answer", "the agent goes on with this, in the same conversation", () => send("answer", { text: reason.value })),
        button("✓ take as satisfied", "go on as if the output said so", () => send("decide", seen({ satisfied: true })), { class: "mnb-b mnb-yes" }),
        button("✗ take as not satisfied", "go on as if the output said so", () => send("decide", seen({ satisfied: false })), { class: "mnb-b mnb-not" }),
        h("span", { class: "mnb-row" }, target, button("Go there", "take the output and go on there, whatever the edges say", () => send("decide", seen({ target: target.value })))));
    },
  };
}

/** What the agent says while it works; the view follows the end unless one has scrolled up. */
function liveBox(send) {
  const words = h("pre", { class: "mnb-pre mnb-live", tabindex: "0", "aria-label": "what the agent says" });
  const calls = h("div", {});
  const notes = h("div", {});
  const node = h("div", { hidden: true }, h("h4", { class: "mnb-h" }, "what it does"), calls, words, notes);
  return {
    node,
    update(live) {
      const any = live.words || (live.calls || []).length || (live.notes || []).length;
      node.hidden = !any;
      if (!any) return;
      const atEnd = words.scrollHeight - words.scrollTop - words.clientHeight < 24;
      words.hidden = !live.words;
      setText(words, (live.cut ? "… " : "") + (live.words || ""));
      if (atEnd) words.scrollTop = words.scrollHeight;
      drawBlocks(calls, live.calls || [], send);
      drawBlocks(notes, (live.notes || []).map((text) => ({ is: "line", text, tone: "quiet" })), send);
    },
  };
}

/** The answer of a person: two buttons and a reason, a small table of items, words, or JSON. */
function formBox(send) {
  const words = h("div", { class: "mnb-ask" });
  const before = h("div", {});
  const body = h("div", { class: "mnb-col" });
  const node = h("div", { role: "group", "aria-label": "your answer", hidden: true }, words, before, body);
  let shown = "", key = null, fields = {};
  const make = (form) => {
    clear(body);
    fields = {};
    if (form.draft) {
      const wish = h("textarea", { class: "mnb-in", rows: "2", placeholder: "what should be different", "aria-label": "what should be different" });
      fields.wish = wish;
      body.append(wish, h("div", { class: "mnb-row" },
        button("Accept", "accept the draft and ask for the final result", () => send("finalize"), { class: "mnb-b mnb-main" }),
        button("Refine", "ask for a changed draft", () => wish.value.trim() && send("refine", { text: wish.value }))));
    }
    const text = h("textarea", { class: "mnb-in mnb-code", rows: "6", placeholder: form.text ? "the answer" : "the answer, as JSON", "aria-label": "the answer" });
    fields.text = text;
    const go = button("Send", "answer in place of the agent", () => isEnabled(go) && send("reply", { text: text.value }), { class: "mnb-b mnb-main" });
    setEnabled(go, false, "write an answer that would be taken");
    fields.check = checkedField(text, send, () => "reply", "this answer would be taken", (fine) => setEnabled(go, fine, "write an answer that would be taken"));
    const whole = h("div", { class: "mnb-col" }, text, fields.check.host, h("div", { class: "mnb-row" }, go));
    text.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && isEnabled(go)) go.click();
    });
    const quick = form.items ? itemsForm(send, form, fields) : form.verdict ? verdictForm(send, form, fields) : null;
    if (!quick) {
      body.append(whole);
      return;
    }
    whole.hidden = true;
    const json = button("JSON", "write the whole answer as JSON", () => {
      whole.hidden = !whole.hidden;
      setAttr(json, "aria-expanded", String(!whole.hidden));
      if (!whole.hidden) text.focus();
    }, { "aria-expanded": "false" });
    quick.row.append(json);
    body.append(quick.node, whole);
  };
  return {
    node,
    update(form, now, busy) {
      node.hidden = !form || busy;
      if (!form) return;
      const shape = JSON.stringify([form.text, form.draft, form.items, form.verdict, form.wanted]);
      if (key !== now || shown !== shape) {
        const keep = key === now ? fields.text?.value : "";
        key = now;
        shown = shape;
        make(form);
        if (keep) fields.text.value = keep;
      }
      drawBlocks(words, [{ is: "line", text: form.words, tone: form.person ? "now" : "" }, ...(form.verdict ? [{ is: "line", text: `✓ leads to ${form.verdict.yes}; ✗ leads to ${form.verdict.no}` }] : [])], send);
      drawBlocks(before, [
        ...(form.previous ? [{ is: "head", text: form.previous.who === "its draft" ? "the draft" : `previous output, ${form.previous.who}`, small: true }, { is: "pre", text: form.previous.text + (form.previous.cut ? "…" : "") }] : []),
        ...(form.wish ? [{ is: "head", text: "what is asked now", small: true }, { is: "pre", text: form.wish }] : []),
        ...(form.text || !form.wanted.length ? [] : [{ is: "fold", title: "what the answer must hold", inside: [{ is: "table", headers: ["field", "what it must be"], rows: form.wanted }], open: false }]),
      ], send);
    },
    unsent() {
      if (node.hidden) return [];
      const text = fields.text?.value.trim();
      return text ? [{ words: "the answer", message: { kind: "reply", text: fields.text.value } }] : [];
    },
  };
}

function verdictForm(send, form, fields) {
  const reason = h("textarea", { class: "mnb-in", rows: "1", placeholder: "the reason, for whoever works next", "aria-label": "the reason" });
  fields.reason = reason;
  const say = (satisfied) => () => send("verdict", { satisfied, reason: reason.value });
  const row = h("div", { class: "mnb-row" },
    button("✓ satisfied", `goes to ${form.verdict.yes}`, say(true), { class: "mnb-b mnb-yes" }),
    button("✗ not satisfied", `goes to ${form.verdict.no}, with the reason`, say(false), { class: "mnb-b mnb-not" }));
  return { node: h("div", { class: "mnb-col" }, reason, row), row };
}

/** A small table of work items to type in; Enter in the last row begins another. */
function itemsForm(send, form, fields) {
  const list = h("div", { class: "mnb-col" });
  const note = h("div", { role: "status" });
  const rows = [];
  const add = (title = "", context = "") => {
    const name = h("input", { class: "mnb-in", placeholder: "title", value: title, "aria-label": `title of item ${rows.length + 1}` });
    const about = h(context.includes("\n") ? "textarea" : "input", { class: "mnb-in", placeholder: "context: all that is needed to do it", value: context, "aria-label": `context of item ${rows.length + 1}` });
    const one = { name, about, node: h("div", { class: "mnb-itemrow" }, name, about, button("×", "take this item away", () => {
      rows.splice(rows.indexOf(one), 1);
      one.node.remove();
    }, { class: "mnb-x", "aria-label": "take this item away" })) };
    about.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && rows.at(-1) === one) add().name.focus();
    });
    rows.push(one);
    list.append(one.node);
    return one;
  };
  add();
  list.addEventListener("paste", (event) => {
    const text = event.clipboardData?.getData("text/plain") || "";
    if (!text.includes("\t") && !text.trim().includes("\n")) return;
    event.preventDefault();
    const last = rows.at(-1);
    if (last && !last.name.value && !last.about.value) {
      rows.pop();
      last.node.remove();
    }
    for (const cells of rowsOf(text)) add(...cells.slice(0, 2));
  });
  const given = () => rows.filter((one) => one.name.value || one.about.value).map((one) => [one.name.value, one.about.value, null]);
  const go = (satisfied) => () => {
    const all = given();
    const bad = all.find(([title, context]) => !title.trim() || !context.trim());
    setText(note, bad ? "✖ every item needs a title and a context" : "");
    if (!bad) send("items_answer", { rows: all, reason: "", satisfied });
  };
  const verdict = form.wanted.some(([name]) => name === "satisfied");
  const row = h("div", { class: "mnb-row" },
    verdict ? [button("✓ Send, satisfied", "send these items", go(true), { class: "mnb-b mnb-yes" }), button("✗ Send, not satisfied", "send these items", go(false), { class: "mnb-b mnb-not" })]
      : button("Send these items", "answer with these work items", go(null), { class: "mnb-b mnb-main" }),
    button("Add", "another item", () => add().name.focus()));
  fields.items = rows;
  return { node: h("div", { class: "mnb-col" }, h("div", { class: "mnb-dim" }, "work items; rows can be pasted from a spreadsheet"), list, note, row), row };
}

/** The output of the last step, to be corrected and decided anew. */
export function correctBox(send) {
  const summary = h("summary", {});
  const text = h("textarea", { class: "mnb-in mnb-code", rows: "5", "aria-label": "the corrected output" });
  const why = h("p", { class: "mnb-p mnb-t-warn" });
  const go = button("Recommit", "decide the step again with this output; the original is kept", () => isEnabled(go) && send("recommit", { text: text.value }), { class: "mnb-b mnb-main" });
  const back = button("Revert", "the output as it is", () => {
    text.value = given;
    check.clear();
    setEnabled(go, false, "change something first");
  });
  const node = h("details", { class: "mnb-fold", hidden: true }, summary, why, text);
  let key = null, given = "", blocked = "";
  const check = checkedField(text, send, () => "correction", "this output would be taken", (fine) => setEnabled(go, fine && text.value !== given && !blocked, blocked || "change something first"));
  node.append(check.host, h("div", { class: "mnb-row" }, go, back));
  return {
    node,
    open() {
      node.open = true;
      text.focus();
      text.scrollIntoView({ block: "nearest" });
    },
    update(data) {
      node.hidden = !data;
      if (!data) return;
      blocked = data.why_not || "";
      why.hidden = !blocked;
      setText(why, blocked);
      if (data.key !== key) {
        key = data.key;
        given = text.value = data.text;
        node.open = data.open;
        check.clear();
        setEnabled(go, false, blocked || "change something first");
      }
      setText(summary, data.words);
    },
  };
}
