/** The inspector of design mode: the form of the selection, its edges, and a preview of its agent's prompt. */
import { h, button, focused, isNew, redraw, refill, setText, icon } from "./dom.js";
import { designForm, radios } from "./materia_form.js";
import { afterForms } from "./design_bar.js";
import { tabRow } from "./tabs.js";

/** Icon of each kind of selection; other kinds have the icon of a graph. @type {Record<string, Parameters<typeof icon>[0]>} */
const ICON_OF = { agent: "model", utility: "utility", loop: "loop", exit: "exit" };

/** @type {Record<string, string[]>} */
const TABS = { socket: ["materia", "socket", "ways", "json"], loop: ["form", "exits", "json"], loadout: ["form", "json"], edge: ["form", "json"], exit: ["form", "json"], oldExit: ["form"], marked: ["form"] };
/** @type {Record<string, string>} */
const TITLES = { materia: "Materia", socket: "Socket", ways: "Edges", json: "JSON", form: "Fields", exits: "Exits" };

/** @param {HTMLElement} host @param {SendToDesigner} send @returns {Part} */
export function designInspectorPart(host, send) {
  const act = afterForms(host, send);
  const surface = () => /** @type {HTMLElement|null} */ (host.closest(".mnb-surface"));
  const seek = h("select", { class: "mnb-in mnb-d-seek", "aria-label": "select a part of the design", title: "select a part", onchange: () => act("pick", { part: seek.value ? JSON.parse(seek.value) : null, keep: true }) });
  const title = h("h3", { class: "mnb-d-head", tabindex: "-1" }), mark = h("span", { class: "mnb-d-mark", "aria-hidden": "true" }), sub = h("span", { class: "mnb-d-sub" });
  const acts = h("div", { class: "mnb-d-acts" }), armed = h("div", { class: "mnb-d-armed", hidden: true, role: "status" });
  const tabs = tabRow("tabs of the selection", (name) => {
    chosen[data.kind] = name;
    draw();
  }, "mnb-d-");
  const body = tabs.panel;
  body.className = "mnb-d-body";
  const root = h("div", { class: "mnb-d-inspector" }, h("div", { class: "mnb-d-top" }, seek), h("div", { class: "mnb-d-headline" }, mark, h("div", { class: "mnb-d-names" }, title, sub), acts), tabs.row, armed, body);
  host.append(root);

  /** @type {Record<string, string>} the open tab for each kind of part */
  const chosen = {};
  let data = /** @type {Selected} */ (/** @type {unknown} */ (null)), of = "", changedEverywhere = "";
  /** @type {ReturnType<typeof designForm>[]} */
  let forms = [];
  let update = () => {};

  /** Use the next click on a socket as an answer instead of a selection. */
  let disarm = () => {};
  const arm = (/** @type {string} */ text, /** @type {(id: string) => void} */ done) => {
    disarm();
    const box = surface(), listeners = new AbortController(), options = { capture: true, signal: listeners.signal };
    if (!box) return;
    box.addEventListener("mnb-pick", (event) => {
      const { kind, id } = /** @type {CustomEvent} */ (event).detail ?? {};
      event.stopImmediatePropagation();
      event.preventDefault();
      disarm();
      // Wait until the picture has sent its click to the kernel, so that the result of the action stays selected.
      if (kind === "socket" || kind === "end") setTimeout(() => done(kind === "end" ? "end" : id), 0);
    }, options);
    box.addEventListener("keydown", (event) => event.key === "Escape" && disarm(), options);
    box.dataset.arming = "yes";
    setText(armed, `${text} Escape cancels.`);
    armed.hidden = false;
    disarm = () => {
      listeners.abort();
      delete box.dataset.arming;
      armed.hidden = true;
      disarm = () => {};
    };
  };
  const flush = () => forms.forEach((form) => form.flush());
  root.addEventListener("mnb-flush", flush);

  // -- the tabs: each fills an element and returns its update function ----------------

  const line = (/** @type {Child[]} */ ...children) => h("div", { class: "mnb-d-line" }, children);
  const labelled = (/** @type {string} */ text) => h("div", { class: "mnb-d-label" }, text);
  const form = (/** @type {HTMLElement} */ into, help = {}) => {
    const newForm = designForm(into, send, { pickSocket: (done) => arm("Click a socket in the picture.", done), ...help });
    forms.push(newForm);
    return newForm;
  };
  const nameOf = (/** @type {string} */ id) => data.names[id] ?? id;
  const selectOf = (/** @type {string} */ label, /** @type {string[]} */ ids, value = "") =>
    h("select", { class: "mnb-in", "aria-label": label }, h("option", { value: "", selected: !value }, label), ids.map((id) => h("option", { value: id, title: id, selected: id === value }, nameOf(id))));
  const edgeList = (/** @type {HTMLElement} */ list, /** @type {EdgeRow[]} */ all, /** @type {string} */ none) => refill(list, all.map((edge, index) => edgeItem(edge, index, act, nameOf)), !all.length && h("li", { class: "mnb-dim" }, none));
  /** @type {Record<string, (into: HTMLElement) => () => void>} */
  const make = {
    /** The edges of a socket in evaluation order, and a form for a new edge. */
    ways(into) {
      const list = h("ol", { class: "mnb-d-ways" }), sentence = h("div", { class: "mnb-dim" }), to = selectOf("to …", data.targets), id = data.of[1];
      const limit = h("input", { class: "mnb-in mnb-d-most", placeholder: "no limit", "aria-label": "maximum number of times for each item", inputmode: "numeric" });
      let when = "";
      const say = () => setText(sentence, to.value && `${nameOf(id)} → ${nameOf(to.value)}${when && `, ${new Map(data.conditions).get(when)}`}${limit.value.trim() && `, at most ${limit.value.trim()} times`}`);
      const connect = (/** @type {string} */ target) => act("connect", { from: id, to: target, ...(when && { when }), ...(limit.value.trim() && { max_traversals: limit.value.trim() }) });
      for (const input of [to, limit]) input.addEventListener("input", say);
      into.append(list, h("div", { class: "mnb-d-box" }, labelled("new edge"),
        line(to, button("Connect", "add an edge to this target", () => (to.value ? connect(to.value) : to.focus()), { class: "mnb-b mnb-main" })),
        radios([["", "automatic"], ...data.conditions], (condition) => {
          when = condition;
          say();
        }, { "aria-label": "condition of the new edge" }).node,
        line(h("span", { class: "mnb-dim" }, "at most"), limit, h("span", { class: "mnb-dim" }, "times for each item")), sentence,
        line(button("Connect → click the target", "then click the target in the picture", () => arm(`Click the target of the new edge from ${nameOf(id)}.`, connect)))));
      return () => edgeList(list, data.ways, "no edges: the cast ends here");
    },
    exits(into) {
      const list = h("ol", { class: "mnb-d-ways" });
      const from = selectOf("from …", data.members, data.members.at(-1)), to = selectOf("to …", data.targets);
      let when = data.conditions[0][0];
      const add = button("Add exit", "add an exit that is taken after the last item", () => {
        if (!from.value || !to.value) return (from.value ? to : from).focus();
        act("exit", { loop: data.of[1], from: from.value, when, to: to.value });
      }, { class: "mnb-b mnb-main" });
      into.append(list, h("div", { class: "mnb-d-box" }, labelled("new exit, taken after the last item"), line(from, to, add), radios(data.conditions, (condition) => void (when = condition), { "aria-label": "condition of the new exit" }, when).node));
      return () => edgeList(list, data.exits, "no exits: the cast ends with the last item");
    },
    loop(into) {
      const source = h("div", {}), members = h("div", { class: "mnb-d-members" }), part = h("div", {}), fieldForm = form(part);
      into.append(h("div", { class: "mnb-d-row" }, h("span", { class: "mnb-d-label" }, "iterates over"), source), part, members);
      const change = (/** @type {string[]} */ ids) => act("members", { loop: data.of[1], ids });
      const member = (/** @type {string} */ id) => h("span", { class: "mnb-d-member" }, button(nameOf(id), `select ${id}`, () => act("pick", { part: ["socket", id], keep: true }), { class: "mnb-d-link" }),
        button("×", `remove ${nameOf(id)} from the loop`, () => change(data.members.filter((other) => other !== id)), { class: "mnb-x", "aria-label": `remove ${nameOf(id)} from the loop` }));
      return () => {
        const more = selectOf("add a member …", data.sockets.filter((id) => !data.members.includes(id)));
        more.addEventListener("change", () => more.value && change([...data.members, more.value]));
        refill(source, radios([["consumes", "work items"], ["iterator", "a list"], ["", "nothing"]], (sourceKind) => act("source", { loop: data.of[1], source: sourceKind }), { "aria-label": "list of the loop" }, data.source).node);
        fieldForm.update(data.fields);
        refill(members, labelled("members (each round starts with the first member)"), line(data.members.map(member)),
          line(more, data.marked.length > 0 && button(`Use ${data.marked.length} marked sockets`, "make the marked sockets the members of the loop", () => change(data.marked))));
      };
    },
    materia(into) {
      if (!data.materia) {
        into.append(h("p", { class: "mnb-dim" }, "This materia does not exist. Choose one in the tab Socket, or create it."));
        return () => {};
      }
      const users = h("span", { class: "mnb-dim" }), scope = h("div", { class: "mnb-d-line" }), part = h("div", {}), prompt = h("div", { class: "mnb-d-told" });
      const key = `${data.of[1]} ${data.materia.id}`, everywhere = () => changedEverywhere === key;
      const choice = radios([["", "here only"], [key, "everywhere"]], (chosenKey) => void (changedEverywhere = chosenKey), { "aria-label": "where changes to the materia apply" }, everywhere() ? key : "");
      // The choice counts before the field with the focus is left, which sends its text.
      choice.node.addEventListener("pointerdown", ({ target }) => (changedEverywhere = /** @type {Element} */ (target).closest("label")?.querySelector("input")?.value ?? changedEverywhere));
      scope.append(users, choice.node);
      into.append(scope, part, prompt);
      const fieldForm = form(part, { variables: () => data.materia?.variables ?? [], everywhere }), would = promptPreviews(prompt);
      return () => {
        const materia = data.materia;
        if (!materia) return;
        setText(users, `${materia.users} Change it`);
        scope.hidden = !materia.users;
        fieldForm.update(materia.fields);
        would(materia.told);
      };
    },
    form(into) {
      const sentence = h("p", { class: "mnb-d-note" }), part = h("div", {}), order = h("div", { class: "mnb-d-line" }), fieldForm = form(part);
      into.append(sentence, part, order);
      return () => {
        const hint = data.empty ? "Click a materia in the palette to place the first socket; a cast starts there." : "Select a socket or an edge to edit it. Drag between sockets to connect them; hold Shift and drag a rectangle around sockets to make a loop.";
        setText(sentence, data.sentence || (data.kind === "loadout" ? hint : ""));
        sentence.hidden = !sentence.textContent;
        fieldForm.update(data.fields);
        redraw(order, () => [
          data.first === false && button("↑ earlier", "move it up so that it is checked earlier", () => act("reorder", { of: data.of, offset: -1 })),
          data.last === false && button("↓ later", "move it down so that it is checked later", () => act("reorder", { of: data.of, offset: 1 })),
          data.turn && button(data.turn, "turn an edge into an exit, or an exit into an edge", () => act("turn", { of: data.of })),
        ], title);
      };
    },
    socket(into) {
      const part = h("div", {}), removal = h("p", { class: "mnb-dim mnb-d-note" }), fieldForm = form(part);
      into.append(part, removal);
      return () => {
        fieldForm.update(data.fields);
        setText(removal, `Remove deletes ${data.removes}`);
      };
    },
    json(into) {
      const text = h("pre", { class: "mnb-d-json", tabindex: "0", "aria-label": "definition as JSON" });
      into.append(text);
      return () => setText(text, data.json || "");
    },
  };

  /** Return the buttons for the selection. @returns {Child} */
  const actsOf = () => {
    const isGroup = data.kind === "marked", marked = data.marked?.length ?? 0;
    const action = (/** @type {string} */ key, /** @type {string} */ label, /** @type {string} */ about, /** @type {() => void} */ done, style = "", attrs = {}) => button(label, about, done, { class: `mnb-b mnb-small ${style || "mnb-quiet"}`, "data-key": key, ...attrs });
    return [
      data.kind === "socket" && !data.entry && action("entry", "Make entry", "make this the socket where a cast starts", () => act("set_entry", { id: data.of[1] })),
      data.kind === "socket" && action("mark", data.isMarked ? "Unmark" : "Mark", "mark this socket, for example to make a loop of the marked sockets", () => act("mark", { id: data.of[1] }), "", { "aria-pressed": String(Boolean(data.isMarked)) }),
      marked > 0 && action("loop", `Make loop (${marked})`, "make a loop of the marked sockets", () => act("loop"), "mnb-main"),
      (data.kind === "socket" || isGroup) && action("twice", "Duplicate", "insert a copy next to it (Ctrl-D)", () => act("duplicate")),
      data.kind !== "loadout" && action("away", "Remove", "remove it (Delete)", () => act("delete", isGroup ? {} : { of: data.of }), "mnb-quiet mnb-bad"),
      marked > 0 && action("clear", "Clear", "remove all marks", () => act("marquee", { ids: [] })),
    ];
  };
  const draw = () => {
    const names = TABS[data.kind] ?? ["form"], tab = names.includes(chosen[data.kind]) ? chosen[data.kind] : names[0], held = focused(body), now = data.of.join();
    const { materia } = data;
    if (isNew(body, [data.kind, data.of, tab, materia?.id, materia?.work, materia?.variables.map((variable) => variable.name), data.targets, data.kind === "loop" && data.members])) {
      if (of && of !== now) disarm();
      of = now;
      flush();
      forms = [];
      refill(body);
      update = make[tab === "form" && data.kind === "loop" ? "loop" : tab](body);
    }
    /** @type {Record<string, number|undefined>} */
    const count = { ways: data.ways?.length, exits: data.exits?.length };
    tabs.update(names.map((name) => [name, TITLES[name] + (count[name] === undefined ? "" : ` ${count[name]}`)]), tab);
    tabs.row.hidden = names.length < 2;
    update();
    if (held && !focused(body) && document.activeElement === document.body) body.focus({ preventScroll: true });
  };
  return {
    /** @param {{inspector?: Selected, parts: {what: What, words: string}[]}} slice */
    update({ inspector, parts }) {
      if (!inspector) return;
      data = inspector;
      root.dataset.of = JSON.stringify(data.of);
      if (isNew(seek, parts)) refill(seek, h("option", { value: "" }, "the loadout itself"), parts.map((part) => h("option", { value: JSON.stringify(part.what) }, part.words)));
      seek.value = data.kind === "loadout" || data.kind === "marked" ? "" : JSON.stringify(data.of);
      setText(title, data.title);
      setText(sub, data.sub);
      const kind = data.work || data.kind || "";
      if (isNew(mark, kind)) refill(mark, icon(ICON_OF[kind] ?? "layout"));
      redraw(acts, actsOf, title);
      draw();
    },
    destroy() {
      disarm();
      flush();
      host.replaceChildren();
    },
  };
}

/** A preview of the agent's prompt in one of several situations, with the size of each part. @param {HTMLElement} into */
function promptPreviews(into) {
  const open = new Set(["Your task"]);
  let situation = "";
  const row = (/** @type {PromptShare} */ { title, size, tokens, share, note, text }) => {
    const head = [h("span", { class: "mnb-d-partname" }, title), h("span", { class: "mnb-d-size", title: `about ${tokens} tokens` }, size ? size.toLocaleString("en") : "–"),
      size ? h("span", { class: "mnb-d-share", "aria-hidden": "true", style: `--share: ${share}` }) : h("span", {}), (note || !size) && h("span", { class: "mnb-dim mnb-d-why" }, size ? note : `left out: ${note}`)];
    if (!size) return h("div", { class: "mnb-d-part mnb-dim" }, head);
    const node = h("details", { class: "mnb-d-layer", open: open.has(title) }, h("summary", { class: "mnb-d-part" }, head), h("pre", { tabindex: "0" }, text));
    node.addEventListener("toggle", () => (node.open ? open.add(title) : open.delete(title)));
    return node;
  };
  const draw = (/** @type {PromptPreview[]} */ previews) => {
    const preview = previews.find((option) => option.words === situation) ?? previews[0];
    if (!isNew(into, [previews, preview?.words])) return;
    const choose = (/** @type {string} */ chosenSituation) => {
      situation = chosenSituation;
      draw(previews);
    };
    const { node } = radios(previews.map((option) => [option.words, option.words]), choose, { "aria-label": "situation" }, preview?.words);
    const held = into.contains(document.activeElement) && document.activeElement instanceof HTMLInputElement;
    refill(into, previews.length > 0 && h("div", { class: "mnb-d-label" }, "preview of the prompt"), previews.length > 1 && node, (preview?.parts ?? []).map(row), preview && h("p", { class: "mnb-dim mnb-d-note" }, preview.about));
    if (held) /** @type {HTMLElement|null} */ (into.querySelector("input:checked"))?.focus();
  };
  return draw;
}

/** Return the list item of an edge. @param {EdgeRow} edge @param {number} index @param {SendToDesigner} act @param {(id: string) => string} nameOf */
function edgeItem(edge, index, act, nameOf) {
  const label = `${edge.when} → ${nameOf(edge.to)}${edge.most ? `, at most ${edge.most}` : ""}`;
  return h("li", { class: "mnb-d-way" },
    button(edge.from ? `${nameOf(edge.from)}: ${label}` : edge.loop ? `exit of ${edge.loop}: ${label}` : label, "select it", () => act("pick", { part: edge.what, keep: true }), { class: `mnb-d-link${edge.tone ? ` mnb-t-${edge.tone}` : ""}` }),
    edge.place !== null && button("↑", "check it earlier", () => act("reorder", { of: edge.what, offset: -1 }), { class: "mnb-x", "aria-label": `${label}: earlier`, "aria-disabled": index === 0 && "true" }),
    button("×", "remove it", () => act("delete", { of: edge.what }), { class: "mnb-x", "aria-label": `${label}: remove` }));
}
