/** The form of a part. Each message contains the complete input and the part; input with unsent text is never overwritten. */
import { h, button, setAttr, setText } from "./dom.js";

let idCount = 0;

/** Make a form that follows the fields of the state. @param {HTMLElement} host an empty element @param {SendToDesigner} send @param {Help} [help] */
export function designForm(host, send, help = {}) {
  const seldom = h("details", { class: "mnb-d-seldom" }, h("summary", {}, "more fields"));
  /** @type {Map<string, ReturnType<typeof formRow>>} */
  let rows = new Map();
  const key = (/** @type {Field} */ field) => JSON.stringify([field.of, field.name, field.input, field.options.map((option) => option[0])]);
  /** Insert a row after another row or at the start. Move it only if necessary, because a moved input loses the focus. */
  const placed = (/** @type {HTMLElement} */ box, /** @type {ChildNode|null} */ before, /** @type {HTMLElement} */ row) => {
    const next = before ? before.nextSibling : box.firstChild;
    if (next !== row) box.insertBefore(row, next);
    return row;
  };
  return {
    /** @param {Field[]} fields */
    update(fields) {
      const newFields = new Map(fields.map((field) => [key(field), field]));
      for (const [name, row] of rows) {
        if (newFields.has(name)) continue;
        row.flush();
        row.root.remove();
      }
      const next = new Map();
      /** @type {[ChildNode|null, ChildNode|null]} */
      let [first, other] = [null, seldom.firstChild];
      for (const [name, field] of newFields) {
        const row = rows.get(name) ?? formRow(field, send, help);
        row.update(field);
        next.set(name, row);
        if (field.first || (field.value !== "" && field.value !== false) || field.error) first = placed(host, first, row.root);
        else other = placed(seldom, other, row.root);
      }
      rows = next;
      if (seldom.parentNode !== host || seldom.nextSibling) host.append(seldom);
      seldom.hidden = seldom.children.length < 2;
    },
    flush: () => rows.forEach((row) => row.flush()),
  };
}

/** @param {Field} field @param {SendToDesigner} send @param {Help} help */
function formRow(field, send, help) {
  const id = `mnb-d-${++idCount}`, { of, name, about } = field;
  const error = h("div", { class: "mnb-d-error", id: `${id}-error`, role: "alert" });
  /** @type {Record<string, (options: ControlOptions) => Control>} */
  const controls = { flag: flagControl, choice: choiceControl, scope: scopeControl };
  const control = (controls[field.input] ?? textControl)({ id, field, help, commit: (value) => send("set", { of, field: name, value, everywhere: help.everywhere?.() }) });
  const label = h(control.labelled ? "label" : "span", { class: "mnb-d-label", id: `${id}-label`, for: control.labelled && id, title: about }, field.label);
  const root = h("div", { class: "mnb-d-row", "data-input": field.input, "data-field": name }, label, h("div", { class: "mnb-d-control" }, control.root, field.unit && h("span", { class: "mnb-dim" }, field.unit), error));
  root.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    control.revert?.();
    if (error.textContent) send("forget", { of, field: name });
  });
  return {
    root,
    flush: () => control.flush?.(),
    /** @param {Field} now */
    update(now) {
      control.update(now);
      setText(error, now.error ? `✖ ${now.error}` : now.idle ? `no effect: ${now.idle}` : "");
      setAttr(control.input, "aria-invalid", now.error ? "true" : null);
      setAttr(control.input, "aria-describedby", now.error ? error.id : null);
      setAttr(control.input, "aria-required", now.required ? "true" : null);
    },
  };
}

/** @param {ControlOptions} options @returns {Control} */
function textControl({ id, field, commit, help }) {
  const { input: kind, shape, options, label } = field, { pickSocket } = help;
  const long = ["prose", "lines", "json"].includes(kind), chosen = kind === "reference" && shape !== "materia id";
  const attrs = { class: `mnb-in${long && kind !== "prose" ? " mnb-code" : ""}`, id, title: field.about, spellcheck: kind === "prose" ? "true" : "false", autocomplete: "off" };
  const list = !long && !chosen && options.length ? h("datalist", { id: `${id}-list` }, options.map(([value]) => h("option", { value }))) : null;
  const input = chosen ? h("select", attrs, options.map(([value, caption]) => h("option", { value }, caption)))
    : long ? h("textarea", { ...attrs, rows: kind === "prose" ? 7 : 3, placeholder: kind === "lines" ? "one per line" : shape })
    : h("input", { ...attrs, placeholder: shape, list: list?.id, inputmode: kind === "number" && "numeric" });
  /** @type {Field|null} the last value from the kernel */
  let last = null;
  /** @type {string|null} a sent value that the kernel has not answered */
  let sent = null;
  const displayed = (/** @type {Field} */ now) => now.typed ?? now.value;
  const dirty = () => last !== null && input.value !== (sent ?? displayed(last));
  const flush = () => {
    if (!last || !dirty()) return;
    if (!long && input.value.trim() === last.value && !last.error) {
      input.value = last.value;
      return;
    }
    sent = input.value;
    commit(input.value);
  };
  const fill = (/** @type {string} */ value) => {
    if (input instanceof HTMLSelectElement && ![...input.options].some((option) => option.value === value)) input.append(h("option", { value }, value || "choose"));
    input.value = value;
  };
  input.addEventListener("change", flush);
  input.addEventListener("keydown", (event) => {
    const { key, ctrlKey, metaKey } = /** @type {KeyboardEvent} */ (event);
    if (key === "Enter" && (!long || ctrlKey || metaKey)) flush();
  });
  if (input instanceof HTMLInputElement) input.addEventListener("focus", () => input.select());
  return {
    root: h("div", { class: long ? "mnb-d-long" : "mnb-d-short" },
      kind === "prose" && input instanceof HTMLTextAreaElement && variableChips(input, help.variables?.() ?? []), input, list,
      chosen && pickSocket && button("pick", "then click the socket in the picture", () => pickSocket((socket) => (fill(socket), flush())), { class: "mnb-b mnb-small", "aria-label": `choose ${label} in the picture` })),
    input,
    labelled: true,
    flush,
    revert() {
      sent = null;
      if (last) fill(last.value);
    },
    update(now) {
      const before = last, typing = dirty();
      last = now;
      if (before && before.value === now.value && before.typed === now.typed && before.error === now.error) return;
      sent = null;
      if ((!before || !typing) && input.value !== displayed(now)) fill(displayed(now));
    },
  };
}

/** Return buttons that insert the variables of a prompt at the caret. @param {HTMLTextAreaElement} input @param {{name: string, about: string}[]} variables */
function variableChips(input, variables) {
  const chip = (/** @type {string} */ text, /** @type {string} */ about) => {
    const node = button(text, about, () => {
      input.setRangeText(text, input.selectionStart, input.selectionEnd, "end");
      input.dispatchEvent(new Event("input", { bubbles: true }));
      input.focus();
    }, { class: "mnb-d-chip" });
    // The focus stays in the prompt: its text is sent when the field loses the focus, not between two variables.
    node.addEventListener("pointerdown", (event) => event.preventDefault());
    return node;
  };
  return h("div", { class: "mnb-d-chips", role: "group", "aria-label": "insert a variable" }, variables.map((variable) => chip(`{{${variable.name}}}`, variable.about)));
}

/** @param {ControlOptions} options @returns {Control} */
function flagControl({ id, field, commit }) {
  const input = h("input", { type: "checkbox", id, title: field.about, onchange: () => commit(input.checked) });
  return { root: input, input, labelled: true, update: (now) => void (input.checked = now.value === true) };
}

/** Make radio buttons. @param {[string, string][]} options @param {(value: string) => void} choose @param {Attributes} attrs the label, or the id of the labelling element @param {string} [chosen] the value that is selected */
export function radios(options, choose, attrs, chosen = "") {
  const name = `mnb-d-${++idCount}`;
  const inputs = options.map(([value]) => h("input", { type: "radio", name, value, checked: value === chosen, onchange: () => choose(value) }));
  return {
    node: h("div", { class: "mnb-d-radios", role: "radiogroup", ...attrs }, options.map(([, label], index) => h("label", {}, inputs[index], h("span", {}, label)))),
    /** @param {string} value */
    set(value) {
      for (const input of inputs) input.checked = input.value === value;
    },
  };
}

/** @param {ControlOptions} options @returns {Control} */
function choiceControl({ id, field, commit }) {
  const { node, set } = radios(field.options, commit, { id, "aria-labelledby": `${id}-label` });
  return { root: node, input: node, update: (now) => set(now.value) };
}

/** Return a control for one of several fixed values or a comma-separated list of names. @param {ControlOptions} options @returns {Control} */
function scopeControl({ id, field, commit }) {
  const fixedValues = field.options.map(([value]) => value);
  const names = h("input", { class: "mnb-in", placeholder: "names, separated by commas", "aria-label": `${field.label}: names`, title: field.about });
  const choose = (/** @type {string} */ value) => {
    names.hidden = value !== "";
    value === "" ? names.focus() : commit(value);
  };
  const { node, set } = radios([...field.options, ["", "custom"]], choose, { id, "aria-labelledby": `${id}-label` });
  /** @type {string|null} */
  let last = null;
  const own = () => (last !== null && !fixedValues.includes(last) ? last : "");
  const dirty = () => !names.hidden && names.value.trim() !== own() && names.value.trim() !== "";
  const flush = () => dirty() && commit(names.value.trim());
  names.addEventListener("change", flush);
  names.addEventListener("keydown", (event) => event.key === "Enter" && flush());
  return {
    root: h("div", { class: "mnb-d-short mnb-d-scope" }, node, names),
    input: node,
    flush,
    revert: () => void (names.value = own()),
    update(now) {
      const typing = dirty();
      if (last === now.value) return;
      last = now.value;
      const custom = !fixedValues.includes(now.value);
      set(custom ? "" : now.value);
      names.hidden = !custom;
      if (!typing) names.value = own();
    },
  };
}
