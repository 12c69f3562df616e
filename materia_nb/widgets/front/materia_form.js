/** The form of a part: real inputs, each sent whole with the part that it was typed for, and never overwritten while it holds text that was not sent. */
import { h, button, setAttr, setText } from "./dom.js";

let designFieldCount = 0;

/**
 * Make a form that is brought up to date with the fields of the state.
 * @param {HTMLElement} host an empty element
 * @param {(kind: string, values: object) => void} send
 * @param {{variables?: () => Array<{name: string, about: string}>, pickSocket?: (act: (id: string) => void) => void}} [help]
 * @returns {{update(fields: Array<object>): void, flush(): void, unsent(): string[], destroy(): void}}
 */
export function designForm(host, send, help = {}) {
  const seldom = h("details", { class: "mnb-d-seldom" }, h("summary", {}, "more fields"));
  /** @type {Map<string, any>} */
  let rows = new Map();
  const key = (field) => JSON.stringify([field.of, field.name, field.input, field.options.map((one) => one[0])]);
  const flush = () => rows.forEach((row) => row.flush());
  return {
    update(fields) {
      const wanted = new Map(fields.map((field) => [key(field), field]));
      for (const [name, row] of rows) {
        if (wanted.has(name)) continue;
        row.flush();
        row.root.remove();
      }
      const next = new Map();
      let first = null;
      let other = seldom.firstChild;
      for (const [name, field] of wanted) {
        const row = rows.get(name) || designRow(field, send, help);
        row.update(field);
        next.set(name, row);
        const seen = field.first || field.value !== "" && field.value !== false || field.error;
        // A row is moved only where it stands wrong: a moved input would lose the focus.
        if (seen) {
          const after = first ? first.nextSibling : host.firstChild;
          if (after !== row.root) host.insertBefore(row.root, after);
          first = row.root;
        } else {
          if (other.nextSibling !== row.root) seldom.insertBefore(row.root, other.nextSibling);
          other = row.root;
        }
      }
      rows = next;
      if (seldom.parentNode !== host || seldom.nextSibling) host.append(seldom);
      seldom.hidden = seldom.children.length < 2;
    },
    flush,
    unsent: () => [...rows.values()].filter((row) => row.dirty()).map((row) => row.label),
    destroy() {
      flush();
      host.replaceChildren();
    },
  };
}

function designRow(field, send, help) {
  const id = `mnb-d-${(designFieldCount += 1)}`;
  const error = h("div", { class: "mnb-d-error", id: `${id}-error`, role: "alert" });
  const unit = field.unit ? h("span", { class: "mnb-dim" }, field.unit) : null;
  const commit = (value) => send("set", { of: field.of, field: field.name, value });
  const make = { flag: designFlag, choice: designChoice, scope: designScope }[field.input] || designText;
  const control = make(id, field, commit, help);
  const label = h(control.single ? "label" : "span", { class: "mnb-d-label", id: `${id}-label`, ...(control.single ? { for: id } : {}), title: field.about }, field.label);
  const forget = () => send("forget", { of: field.of, field: field.name });
  const root = h("div", { class: "mnb-d-row", "data-input": field.input, "data-field": field.name }, label, h("div", { class: "mnb-d-control" }, control.root, unit, error));
  root.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    const wrong = error.textContent !== "";
    control.revert();
    if (wrong) forget();
  });
  return {
    root,
    label: field.label,
    flush: () => control.flush(),
    dirty: () => control.dirty(),
    update(now) {
      control.update(now);
      setText(error, now.error ? `✖ ${now.error}` : now.idle ? `no effect: ${now.idle}` : "");
      setAttr(control.input, "aria-invalid", now.error ? "true" : null);
      setAttr(control.input, "aria-describedby", now.error ? error.id : null);
      setAttr(control.input, "aria-required", now.required ? "true" : null);
    },
  };
}

function designText(id, field, commit, help) {
  const long = ["prose", "lines", "json"].includes(field.input);
  const chosen = field.input === "reference" && field.shape !== "materia id";
  const list = !long && !chosen && field.options.length ? h("datalist", { id: `${id}-list` }, field.options.map(([value]) => h("option", { value }))) : null;
  const attrs = { class: "mnb-in", id, title: field.about, spellcheck: field.input === "prose" ? "true" : "false", autocomplete: "off" };
  const input = chosen
    ? h("select", attrs)
    : long
      ? h("textarea", { ...attrs, rows: field.input === "prose" ? 7 : 3, placeholder: field.input === "lines" ? "one on each line" : field.shape })
      : h("input", { ...attrs, placeholder: field.shape, list: list ? list.id : null, inputmode: field.input === "number" ? "numeric" : null });
  if (long && field.input !== "prose") input.classList.add("mnb-code");
  let last = null; // what the kernel said, and what it said last is the only thing that a redraw compares with
  let sent = null; // what was sent and not answered yet
  const shown = (now) => (now.typed === null || now.typed === undefined ? now.value : now.typed);
  const dirty = () => last !== null && input.value !== (sent === null ? shown(last) : sent);
  const flush = () => {
    if (!dirty()) return;
    if (!long && input.value.trim() === last.value && !last.error) {
      input.value = last.value;
      return;
    }
    sent = input.value;
    commit(input.value);
  };
  const fill = (value) => {
    if (chosen && ![...input.options].some((one) => one.value === value)) input.append(h("option", { value }, value || "choose"));
    input.value = value;
  };
  if (chosen) for (const [value, words] of field.options) input.append(h("option", { value }, words));
  input.addEventListener("change", flush);
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (!long || event.ctrlKey || event.metaKey)) flush();
  });
  if (!long && !chosen) input.addEventListener("focus", () => input.select());
  const parts = [input, list];
  if (field.input === "prose") parts.unshift(designChips(input, help));
  if (chosen && help.pickSocket)
    parts.push(
      button("pick", "then click the socket in the picture", () => help.pickSocket((socket) => { fill(socket); flush(); }), { class: "mnb-b mnb-small", "aria-label": `choose ${field.label} in the picture` }),
    );
  return {
    root: h("div", { class: long ? "mnb-d-long" : "mnb-d-short" }, ...parts),
    input,
    single: true,
    flush,
    dirty,
    revert() {
      sent = null;
      fill(last.value);
    },
    update(now) {
      const before = last;
      const typing = dirty();
      last = now;
      if (before && before.value === now.value && before.typed === now.typed && before.error === now.error) return;
      sent = null;
      if (!before || !typing) {
        if (input.value !== shown(now)) fill(shown(now));
      }
    },
  };
}

/** The variables that a prompt can name; one that is pressed is put in at the caret, and the typing goes on. */
function designChips(input, help) {
  const chips = h("div", { class: "mnb-d-chips", role: "group", "aria-label": "put in a variable" });
  const variables = help.variables ? help.variables() : [];
  for (const one of variables) {
    const chip = button(`{{${one.name}}}`, one.about, () => {
      const [from, to] = [input.selectionStart, input.selectionEnd];
      input.setRangeText(`{{${one.name}}}`, from, to, "end");
      input.dispatchEvent(new Event("input", { bubbles: true }));
      input.focus();
    }, { class: "mnb-d-chip" });
    // The focus stays in the prompt: its text is sent when it is left, not between two variables.
    chip.addEventListener("pointerdown", (event) => event.preventDefault());
    chips.append(chip);
  }
  return chips;
}

function designFlag(id, field, commit) {
  const input = h("input", { type: "checkbox", id, title: field.about });
  input.addEventListener("change", () => commit(input.checked));
  return {
    root: input,
    input,
    single: true,
    flush() {},
    dirty: () => false,
    revert() {},
    update(now) {
      input.checked = now.value === true;
    },
  };
}

function designRadios(id, options, label, choose) {
  const group = h("div", { class: "mnb-d-radios", role: "radiogroup", "aria-labelledby": `${id}-label`, id });
  const inputs = options.map(([value, words]) => {
    const input = h("input", { type: "radio", name: id, value });
    input.addEventListener("change", () => input.checked && choose(value));
    group.append(h("label", {}, input, h("span", {}, words)));
    return input;
  });
  return { group, inputs };
}

/** Rows of words of which one is on. */
function designChoice(id, field, commit) {
  const { group, inputs } = designRadios(id, field.options, field.label, commit);
  return {
    root: group,
    input: group,
    single: false,
    flush() {},
    dirty: () => false,
    revert() {},
    update(now) {
      for (const input of inputs) input.checked = input.value === now.value;
    },
  };
}

/** A word of a few, or names with commas between them. */
function designScope(id, field, commit) {
  const words = field.options.map(([value]) => value);
  const names = h("input", { class: "mnb-in", placeholder: "names, with commas", "aria-label": `${field.label}: names`, title: field.about });
  let last = null;
  const { group, inputs } = designRadios(id, [...field.options, ["", "custom"]], field.label, (value) => {
    names.hidden = value !== "";
    if (value !== "") commit(value);
    else names.focus();
  });
  const own = () => (last && !words.includes(last.value) ? last.value : "");
  const dirty = () => !names.hidden && names.value.trim() !== own() && names.value.trim() !== "";
  const flush = () => dirty() && commit(names.value.trim());
  names.addEventListener("change", flush);
  names.addEventListener("keydown", (event) => event.key === "Enter" && flush());
  return {
    root: h("div", { class: "mnb-d-short mnb-d-scope" }, group, names),
    input: group,
    single: false,
    flush,
    dirty,
    revert() {
      names.value = own();
    },
    update(now) {
      const typing = dirty();
      if (last && last.value === now.value) return;
      last = now;
      const custom = !words.includes(now.value);
      for (const input of inputs) input.checked = custom ? input.value === "" : input.value === now.value;
      names.hidden = !custom;
      if (!typing) names.value = own();
    },
  };
}
