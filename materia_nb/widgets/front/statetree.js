/** The shared state as a tree, edited in place; what changed in it; the difference of two steps. */
import { h, clear, button, setText, setAttr } from "./dom.js";
import { drawBlocks } from "./blocks.js";
import { checkedField } from "./checking.js";

export function statePart(host, send) {
  const open = new Set(["workItems"]);
  const changes = h("div", {});
  const tree = h("div", { class: "mnb-tree", role: "group", "aria-label": "state" });
  const adder = h("div", { class: "mnb-row" });
  const limits = h("div", {});
  const from = h("input", { class: "mnb-in mnb-num", type: "number", min: "0", "aria-label": "from step" });
  const to = h("input", { class: "mnb-in mnb-num", type: "number", min: "0", "aria-label": "to step" });
  const diff = h("div", {});
  const ask = async () => {
    const found = await send.ask("diff", { a: Number(from.value) || 0, b: Number(to.value) || 0 });
    drawBlocks(diff, found.blocks, send);
  };
  const differ = h("details", { class: "mnb-fold" }, h("summary", {}, "difference of two steps"), h("div", { class: "mnb-row" }, "from", from, "to", to, button("Show", "what changed between these steps", ask)), diff);
  host.append(changes, h("h4", { class: "mnb-h" }, "state"), tree, adder, differ, limits);
  let data = {}, told = "", editor = null;

  const edit = async (node, at) => {
    closeEditor();
    const path = node.path.join(".");
    const whole = await send.ask("value", { path: node.path });
    const asText = node.kind === "text";
    const field = h("textarea", { class: "mnb-in mnb-code", rows: String(Math.min(10, Math.max(1, Math.ceil(whole.text.length / 46)))), "aria-label": `value of ${node.name}` });
    field.value = whole.text;
    const check = asText ? null : checkedField(field, send, () => "value", "this value would be set");
    const apply = () => {
      send("set_value", { path, text: field.value, as_text: asText });
      closeEditor();
    };
    const bar = h("div", { class: "mnb-row" },
      button("Apply", "set this value in the state (Ctrl+Enter)", apply, { class: "mnb-b mnb-main mnb-small" }),
      button("Cancel", "leave it as it is (Escape)", () => closeEditor(), { class: "mnb-b mnb-small" }),
      button("Remove", "take this path out of the state", () => {
        send("remove_value", { path });
        closeEditor();
      }, { class: "mnb-b mnb-small mnb-bad" }),
      button((data.watched || []).includes(path) ? "Do not stop on change" : "Stop on change", "runs stop behind a step that changes this path", () => {
        send("watch", { path });
        closeEditor();
      }, { class: "mnb-b mnb-small" }));
    field.addEventListener("keydown", (event) => {
      if (event.key === "Escape") closeEditor();
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey || (asText && !event.shiftKey && !field.value.includes("\n")))) {
        event.preventDefault();
        apply();
      }
    });
    const box = h("div", { class: "mnb-editor" }, field, check && check.host, bar);
    editor = { box, path, field, was: whole.text, asText };
    at.after(box);
    field.focus();
  };
  const closeEditor = () => {
    if (!editor) return;
    const path = editor.path;
    editor.box.remove();
    editor = null;
    draw();
    tree.querySelector(`[data-path="${CSS.escape(path)}"]`)?.focus();
  };
  const line = (node) => {
    const path = node.path.join(".");
    const plainPath = node.path.every((one) => one && !one.includes("."));
    const can = data.edit && plainPath;
    const watched = (data.watched || []).includes(path);
    const name = h("span", { class: "mnb-key" }, node.name, node.same ? h("span", { class: "mnb-dim", title: "one item under several names" }, ` (= ${node.same.join(", ")})`) : "", watched && h("span", { class: "mnb-dot", title: "runs stop when this changes" }, " ●"));
    if (node.children) {
      const box = h("details", { class: "mnb-branch", "data-key": path });
      const pen = can ? button("✎", `edit ${node.name} as JSON`, (event) => {
        event.preventDefault();
        edit(node, box.firstChild);
      }, { class: "mnb-x", "aria-label": `edit ${node.name} as JSON` }) : null;
      const summary = h("summary", { "data-path": path }, name, h("span", { class: "mnb-dim" }, node.kind === "list" ? ` [${node.count}]` : ` {${node.count}}`));
      box.append(summary);
      if (pen) box.append(pen);
      const fill = () => {
        if (box.dataset.filled) return;
        box.dataset.filled = "yes";
        box.append(...node.children.map(line));
        if (node.more) box.append(h("p", { class: "mnb-p mnb-dim" }, `… ${node.more} more`));
      };
      box.addEventListener("toggle", () => {
        if (box.open) {
          open.add(path);
          fill();
        } else open.delete(path);
      });
      if (open.has(path)) {
        box.open = true;
        fill();
      }
      return box;
    }
    const text = node.text + (node.cut ? `… (${node.cut.toLocaleString("en")} characters)` : "");
    const value = can
      ? h("button", { type: "button", class: `mnb-value mnb-${node.kind}`, title: `edit ${node.name}`, "data-path": path, "aria-label": `${node.name}: ${text.slice(0, 200)}; edit`, onclick: (event) => edit(node, event.currentTarget.parentElement) }, text === "" ? "(empty text)" : text)
      : h("span", { class: `mnb-value mnb-${node.kind}` }, text === "" ? "(empty text)" : text);
    return h("div", { class: "mnb-leaf" }, name, ": ", value);
  };
  const draw = () => {
    const now = JSON.stringify([data.nodes, data.edit, data.watched]);
    if (now === told || editor) return; // a redraw never takes a field away that is typed in
    told = now;
    const focused = tree.contains(document.activeElement) ? document.activeElement.dataset.path : null;
    clear(tree).append(...(data.nodes || []).map(line));
    if (!(data.nodes || []).length) tree.append(h("p", { class: "mnb-p mnb-dim" }, "empty"));
    if (focused) tree.querySelector(`[data-path="${CSS.escape(focused)}"]`)?.focus();
  };
  const path = h("input", { class: "mnb-in", placeholder: "new path, such as plan.title", "aria-label": "new path" });
  const value = h("input", { class: "mnb-in mnb-code", placeholder: 'value as JSON: "text", 3, true', "aria-label": "value as JSON" });
  const put = () => {
    if (!path.value.trim() || !value.value.trim()) return;
    send("set_value", { path: path.value.trim(), text: value.value, as_text: false });
    path.value = value.value = "";
  };
  value.addEventListener("keydown", (event) => event.key === "Enter" && put());
  adder.append(path, value, button("Set", "put this value into the state", put));
  return {
    update(now) {
      data = now;
      drawBlocks(changes, now.blocks, send);
      drawBlocks(limits, now.limits, send);
      adder.hidden = !now.edit;
      setAttr(from, "max", now.steps);
      setAttr(to, "max", now.steps);
      if (document.activeElement !== to && to.dataset.at !== String(now.at)) {
        to.dataset.at = String(now.at);
        to.value = String(now.at);
        from.value = String(Math.max(0, now.at - 1));
      }
      draw();
    },
    unsent: () => (editor && editor.field.value !== editor.was ? [{ words: `state.${editor.path}`, message: { kind: "set_value", path: editor.path, text: editor.field.value, as_text: editor.asText } }] : []),
  };
}
