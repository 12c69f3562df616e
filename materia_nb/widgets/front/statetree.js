/** The shared state as an editable tree, its changes, and the difference between two steps. */
import { h, button, focused, isNew, redraw, onKeys, setAttr } from "./dom.js";
import { drawBlocks } from "./blocks.js";
import { checkedField } from "./checking.js";

/** @param {HTMLElement} host @param {PanelSender} send @returns {Part} */
export function statePart(host, send) {
  const open = new Set(["workItems"]);
  const changes = h("div", {}), limits = h("div", {}), diff = h("div", {});
  const tree = h("div", { class: "mnb-tree", role: "group", "aria-label": "state" });
  const numberField = (/** @type {string} */ label) => h("input", { class: "mnb-in mnb-num", type: "number", min: "0", "aria-label": label });
  const from = numberField("from step"), to = numberField("to step");
  const ask = async () => drawBlocks(diff, (await send.ask("diff", { a: Number(from.value) || 0, b: Number(to.value) || 0 })).blocks, send);
  const differ = h("details", { class: "mnb-fold" }, h("summary", {}, "difference of two steps"), h("div", { class: "mnb-row" }, "from", from, "to", to, button("Show", "what changed between these steps", ask)), diff);
  /** @type {StateSlice} */
  let data = {};
  /** @type {Editor|null} */
  let editor = null;
  const find = (/** @type {string} */ path) => /** @type {HTMLElement|null} */ (tree.querySelector(`[data-key="${CSS.escape(path)}"]`));

  /** Open an editor for a value below its line. @param {StateNode} node @param {Element} line */
  const edit = async (node, line) => {
    closeEditor();
    const path = node.path.join("."), asText = node.kind === "text", was = (await send.ask("value", { path: node.path })).text;
    const field = h("textarea", { class: "mnb-in mnb-code", rows: Math.min(10, Math.max(1, Math.ceil(was.length / 46))), "aria-label": `value of ${node.name}`, value: was });
    const check = asText ? null : checkedField(field, send, "value", "this value is valid");
    const act = (/** @type {string} */ label, /** @type {string} */ title, /** @type {() => void} */ done, style = "") => button(label, title, () => (done(), closeEditor()), { class: `mnb-b mnb-small ${style}` });
    const apply = act("Apply", "set this value in the state (Ctrl+Enter)", () => send("set_value", { path, text: field.value, as_text: asText }), "mnb-main");
    const box = h("div", { class: "mnb-editor" }, field, check?.host, h("div", { class: "mnb-row" }, apply,
      act("Cancel", "discard the change (Escape)", () => {}),
      act("Remove", "remove this path from the state", () => send("remove_value", { path }), "mnb-bad"),
      act(data.watched?.includes(path) ? "Do not stop on change" : "Stop on change", "runs stop after a step that changes this path", () => send("watch", { path })),
      act("Watch", "show this value, and the steps that change it, in the tab Watch", () => send("follow", { path, on: true }))));
    onKeys(field, {
      Escape: closeEditor,
      Enter: (event) => (event.ctrlKey || event.metaKey || (asText && !event.shiftKey && !field.value.includes("\n")) ? apply.click() : false),
    });
    editor = { box, path, field, was, asText };
    line.after(box);
    field.focus();
  };
  const closeEditor = () => {
    if (!editor) return;
    const { box, path } = editor;
    box.remove();
    editor = null;
    draw();
    find(path)?.focus();
  };
  /** @param {StateNode} node @returns {HTMLElement} */
  const line = (node) => {
    const path = node.path.join("."), can = data.edit && node.path.every((key) => key && !key.includes("."));
    const name = h("span", { class: "mnb-key" }, node.name, node.same && h("span", { class: "mnb-dim", title: "one item with several names" }, ` (= ${node.same.join(", ")})`),
      data.watched?.includes(path) && h("span", { class: "mnb-dot", title: "runs stop when this value changes" }, " ●"));
    if (node.children) return branch(node, node.children, path, name, can);
    const text = node.text + (node.cut ? `… (${node.cut.toLocaleString("en")} characters)` : "") || "(empty text)", style = `mnb-value mnb-${node.kind}`;
    const leaf = h("div", { class: "mnb-leaf" }, name, ": ");
    leaf.append(can ? h("button", { type: "button", class: style, title: `edit ${node.name}`, "data-key": path, "aria-label": `${node.name}: ${text.slice(0, 200)}; edit`, onclick: () => edit(node, leaf) }, text) : h("span", { class: style }, text));
    return leaf;
  };
  /** @param {StateNode} node @param {StateNode[]} children @param {string} path @param {HTMLElement} name @param {boolean|undefined} can */
  const branch = (node, children, path, name, can) => {
    const summary = h("summary", { "data-key": path }, name, h("span", { class: "mnb-dim" }, node.kind === "list" ? ` [${node.count}]` : ` {${node.count}}`));
    const box = h("details", { class: "mnb-branch" }, summary, can && button("✎", `edit ${node.name} as JSON`, () => edit(node, summary), { class: "mnb-x", "aria-label": `edit ${node.name} as JSON` }));
    let filled = false;
    const fill = () => {
      if (!filled) box.append(...children.map(line), node.more ? h("p", { class: "mnb-p mnb-dim" }, `… ${node.more} more`) : "");
      filled = true;
    };
    box.addEventListener("toggle", () => {
      if (!box.open) return void open.delete(path);
      open.add(path);
      fill();
    });
    box.open = open.has(path);
    if (box.open) fill();
    return box;
  };
  const draw = () => {
    if (editor || !isNew(tree, [data.nodes, data.edit, data.watched])) return; // never remove a field that is being edited
    redraw(tree, () => (data.nodes?.length ? data.nodes.map(line) : h("p", { class: "mnb-p mnb-dim" }, "empty")));
  };
  const path = h("input", { class: "mnb-in", placeholder: "new path, such as plan.title", "aria-label": "new path" });
  const value = h("input", { class: "mnb-in mnb-code", placeholder: 'value as JSON: "text", 3, true', "aria-label": "value as JSON" });
  const setNewValue = () => {
    if (!path.value.trim() || !value.value.trim()) return;
    send("set_value", { path: path.value.trim(), text: value.value, as_text: false });
    path.value = value.value = "";
  };
  onKeys(value, { Enter: setNewValue });
  const adder = h("div", { class: "mnb-row" }, path, value, button("Set", "set this value in the state", setNewValue));
  host.append(changes, h("h4", { class: "mnb-h" }, "state"), tree, adder, differ, limits);
  return {
    /** @param {StateSlice} now */
    update(now) {
      data = now;
      drawBlocks(changes, now.blocks, send);
      drawBlocks(limits, now.limits, send);
      adder.hidden = !now.edit && !focused(adder);
      setAttr(from, "max", now.steps);
      setAttr(to, "max", now.steps);
      if (document.activeElement !== to && isNew(to, now.at)) {
        to.value = String(now.at);
        from.value = String(Math.max(0, (now.at ?? 0) - 1));
      }
      draw();
    },
    unsent: () => (editor && editor.field.value !== editor.was ? [{ words: `state.${editor.path}`, message: { kind: "set_value", path: editor.path, text: editor.field.value, as_text: editor.asText } }] : []),
  };
}
