/** The inspector of design mode: the form of what is selected, its ways out, and what its agent would be told. */
import { h, button, setAttr, setText } from "./dom.js";
import { designForm } from "./materia_form.js";
import { designFlush } from "./design_bar.js";

const DESIGN_TABS = { socket: ["materia", "socket", "ways", "json"], loop: ["form", "exits", "json"], loadout: ["form", "json"], edge: ["form", "json"], exit: ["form", "json"], oldExit: ["form"], marked: ["form"] };
const DESIGN_TITLES = { materia: "Materia", socket: "Socket", ways: "Ways out", json: "JSON", form: "Fields", exits: "Exits" };

/**
 * @param {HTMLElement} host
 * @param {(kind: string, values?: object) => void} send
 */
export function designInspectorPart(host, send) {
  const act = (kind, values = {}) => {
    designFlush(host);
    send(kind, values);
  };
  const surface = () => host.closest(".mnb-surface");
  const root = h("div", { class: "mnb-d-inspector" });
  host.append(root);
  const seek = h("select", { class: "mnb-in mnb-d-seek", "aria-label": "select a part of the design", title: "select a part" });
  seek.addEventListener("change", () => act("pick", { what: seek.value ? JSON.parse(seek.value) : null, keep: true }));
  const title = h("h3", { class: "mnb-d-head", tabindex: "-1" });
  const mark = h("span", { class: "mnb-d-mark", "aria-hidden": "true" });
  const sub = h("span", { class: "mnb-d-sub" });
  const acts = h("div", { class: "mnb-d-acts" });
  const tabs = h("div", { class: "mnb-d-tabs", role: "tablist", "aria-label": "of what is selected" });
  const body = h("div", { class: "mnb-d-body", role: "tabpanel", tabindex: "-1" });
  const armed = h("div", { class: "mnb-d-armed", hidden: true, role: "status" });
  root.append(h("div", { class: "mnb-d-top" }, seek), h("div", { class: "mnb-d-headline" }, mark, h("div", { class: "mnb-d-names" }, title, sub), acts), tabs, armed, body);

  const chosen = {}; // which tab is open, by kind of part
  let data = null;
  let forms = [];
  let built = "";
  let redraw = () => {};

  /** Let the next socket that is clicked in the picture be an answer, and not a selection. */
  let disarm = () => {};
  const arm = (words, done) => {
    disarm();
    const box = surface();
    if (!box) return;
    const picked = (event) => {
      const { kind, id } = event.detail || {};
      event.stopImmediatePropagation();
      event.preventDefault();
      disarm();
      // After the picture has told the kernel of the click: what is done with it is what stays selected.
      if (kind === "socket" || kind === "end") setTimeout(() => done(kind === "end" ? "end" : id), 0);
    };
    const key = (event) => event.key === "Escape" && disarm();
    box.addEventListener("mnb-pick", picked, true);
    box.addEventListener("keydown", key, true);
    box.dataset.arming = "yes";
    setText(armed, `${words} Escape leaves it.`);
    armed.hidden = false;
    disarm = () => {
      box.removeEventListener("mnb-pick", picked, true);
      box.removeEventListener("keydown", key, true);
      delete box.dataset.arming;
      armed.hidden = true;
      disarm = () => {};
    };
  };
  const pickSocket = (done) => arm("Click a socket in the picture.", done);

  const flush = () => forms.forEach((form) => form.flush());
  let listening = null;
  const listen = () => {
    const box = surface();
    if (!box || listening === box) return;
    listening?.removeEventListener("mnb-flush", flush);
    box.addEventListener("mnb-flush", flush);
    listening = box;
  };

  const form = (into, fields, help = {}) => {
    const made = designForm(into, send, { pickSocket, ...help });
    forms.push(made);
    made.fieldsOf = fields;
    return made;
  };
  const radios = (label, options, value, choose) => {
    const name = `mnb-d-${label.replace(/\W/g, "")}-${(designRadioCount += 1)}`;
    return h("div", { class: "mnb-d-radios", role: "radiogroup", "aria-label": label }, options.map(([one, words]) => {
      const input = h("input", { type: "radio", name, value: one });
      input.checked = one === value;
      input.addEventListener("change", () => input.checked && choose(one));
      return h("label", {}, input, h("span", {}, words));
    }));
  };
  const selectOf = (label, options, value) => {
    const made = h("select", { class: "mnb-in", "aria-label": label }, h("option", { value: "" }, label), options.map((one) => h("option", { value: one }, one)));
    made.value = value || "";
    return made;
  };
  /** The ways out of a socket, in the order in which they are looked at, and a new one. */
  const ways = (into) => {
    const list = h("ol", { class: "mnb-d-ways" });
    const to = selectOf("to …", data.targets, "");
    let when = null;
    const most = h("input", { class: "mnb-in mnb-d-most", placeholder: "no limit", "aria-label": "at most so many times for each item", inputmode: "numeric" });
    const sentence = h("div", { class: "mnb-dim" });
    const tell = () => setText(sentence, to.value ? `${data.of[1]} → ${to.value}${when ? `, ${new Map(data.conditions).get(when)}` : ""}${most.value.trim() ? `, at most ${most.value.trim()} times` : ""}` : "");
    const connect = (target) => {
      const values = { from: data.of[1], to: target };
      if (when) values.when = when;
      if (most.value.trim()) values.most = most.value.trim();
      act("connect", values);
    };
    const go = button("Connect", "lead an edge there", () => (to.value ? connect(to.value) : to.focus()), { class: "mnb-b mnb-main" });
    const click = button("Connect → click the target", "then click the target in the picture", () => arm(`Click where ${data.of[1]} leads.`, connect));
    for (const one of [to, most]) one.addEventListener("input", tell);
    into.append(
      list,
      h("div", { class: "mnb-d-box" },
        h("div", { class: "mnb-d-label" }, "a new way"),
        h("div", { class: "mnb-d-line" }, to, go),
        radios("when the new way is taken", [["", "as fits"], ...data.conditions], "", (one) => { when = one; tell(); }),
        h("div", { class: "mnb-d-line" }, h("span", { class: "mnb-dim" }, "at most"), most, h("span", { class: "mnb-dim" }, "times for each item")),
        sentence,
        h("div", { class: "mnb-d-line" }, click)),
    );
    return () => list.replaceChildren(...data.ways.map((way, place) => designWay(way, place, act)), data.ways.length ? "" : h("li", { class: "mnb-dim" }, "none: the cast ends here"));
  };

  const exits = (into) => {
    const members = h("div", { class: "mnb-d-members" });
    const list = h("ol", { class: "mnb-d-ways" });
    const from = selectOf("from …", data.members, data.members.at(-1));
    const to = selectOf("to …", data.targets, "");
    let when = data.conditions[0][0];
    const add = button("Add exit", "a way out, taken once the list is done", () => {
      if (!from.value || !to.value) return (from.value ? to : from).focus();
      act("exit", { loop: data.of[1], from: from.value, when, to: to.value });
    }, { class: "mnb-b mnb-main" });
    into.append(
      list,
      h("div", { class: "mnb-d-box" },
        h("div", { class: "mnb-d-label" }, "a new exit, taken once the list is done"),
        h("div", { class: "mnb-d-line" }, from, to, add),
        radios("when the new exit is taken", data.conditions, when, (one) => { when = one; })),
      members,
    );
    return () => {
      list.replaceChildren(...data.exits.map((way, place) => designWay(way, place, act)), data.exits.length ? "" : h("li", { class: "mnb-dim" }, "none: with the last item the cast ends"));
      setText(members, `members: ${data.members.join(", ") || "none"}`);
    };
  };

  const loopForm = (into) => {
    const source = h("div", {});
    const members = h("div", { class: "mnb-d-members" });
    const part = h("div", {});
    into.append(h("div", { class: "mnb-d-row" }, h("span", { class: "mnb-d-label" }, "goes over"), source), part, members);
    const made = form(part);
    return () => {
      source.replaceChildren(radios("what the loop goes over", [["consumes", "work items"], ["iterator", "a list"], ["", "nothing"]], data.source, (one) => act("source", { loop: data.of[1], source: one })));
      made.update(data.fields);
      members.replaceChildren(
        h("div", { class: "mnb-d-label" }, "members, the first is where a round begins"),
        h("div", { class: "mnb-d-line" }, data.members.map((one) => h("span", { class: "mnb-d-member" }, button(one, `select ${one}`, () => act("pick", { what: ["socket", one], keep: true }), { class: "mnb-d-link" }),
          button("×", `take ${one} out of the loop`, () => act("members", { loop: data.of[1], ids: data.members.filter((other) => other !== one) }), { class: "mnb-x", "aria-label": `take ${one} out of the loop` })))),
        h("div", { class: "mnb-d-line" }, (() => {
          const more = selectOf("add a member …", data.sockets.filter((one) => !data.members.includes(one)), "");
          more.addEventListener("change", () => more.value && act("members", { loop: data.of[1], ids: [...data.members, more.value] }));
          return more;
        })(), data.marked.length ? button(`Take the ${data.marked.length} marked`, "make the loop of the marked sockets", () => act("members", { loop: data.of[1], ids: data.marked })) : null),
      );
    };
  };

  const materia = (into) => {
    if (!data.materia) {
      into.append(h("p", { class: "mnb-dim" }, "There is no such materia: choose one in the tab Socket, or make it."));
      return () => {};
    }
    const about = h("p", { class: "mnb-dim mnb-d-note" });
    const part = h("div", {});
    const told = h("div", { class: "mnb-d-told" });
    into.append(about, part, told);
    const made = form(part, null, { variables: () => data.materia?.variables || [] });
    const open = new Set(["Instructions"]);
    let toldNow = "";
    return () => {
      const one = data.materia;
      if (!one) return;
      const also = one.shared.length ? `It is placed ${one.shared.length} more time${one.shared.length > 1 ? "s" : ""} (${one.shared.slice(0, 3).join(", ")}${one.shared.length > 3 ? ", …" : ""}): what is changed here holds there too.` : "";
      setText(about, also);
      about.hidden = !also;
      made.update(one.fields);
      const now = JSON.stringify(one.told);
      if (now === toldNow) return;
      toldNow = now;
      told.replaceChildren(
        one.told.length ? h("div", { class: "mnb-d-label" }, "what its agent would be told") : "",
        ...one.told.map((layer) => {
          const made = h("details", { class: "mnb-d-layer" }, h("summary", {}, layer.title), h("pre", { tabindex: "0" }, layer.text));
          made.open = open.has(layer.title);
          made.addEventListener("toggle", () => (made.open ? open.add(layer.title) : open.delete(layer.title)));
          return made;
        }),
      );
    };
  };

  const plain = (into) => {
    const sentence = h("p", { class: "mnb-d-note" });
    const part = h("div", {});
    const order = h("div", { class: "mnb-d-line" });
    into.append(sentence, part, order);
    const made = form(part);
    return () => {
      setText(sentence, data.sentence || (data.kind === "loadout" ? (data.empty ? "Click a materia in the palette to place the first socket; a cast starts there." : "Nothing is selected. Drag from one socket to another to connect them, and draw a frame round some to make a loop of them.") : ""));
      sentence.hidden = !sentence.textContent;
      made.update(data.fields);
      const buttons = [];
      if (data.first !== undefined) {
        buttons.push(["↑ earlier", "look at it before the one above", () => act("order", { of: data.of, by: -1 }), !data.first], ["↓ later", "look at it after the one below", () => act("order", { of: data.of, by: 1 }), !data.last]);
      }
      if (data.turn) buttons.push([data.turn, "the other way to leave a loop", () => act("turn", { of: data.of }), true]);
      const held = order.contains(document.activeElement) ? document.activeElement.textContent : null;
      order.replaceChildren(...buttons.filter((one) => one[3]).map(([words, about, done]) => button(words, about, done)));
      if (held !== null) ([...order.children].find((one) => one.textContent === held) || order.firstChild || title).focus();
    };
  };

  const socket = (into) => {
    const part = h("div", {});
    const gone = h("p", { class: "mnb-dim mnb-d-note" });
    into.append(part, gone);
    const made = form(part);
    return () => {
      made.update(data.fields);
      setText(gone, `Remove takes away ${data.removes}`);
    };
  };

  const json = (into) => {
    const text = h("pre", { class: "mnb-d-json", tabindex: "0", "aria-label": "as it is written" });
    into.append(text);
    return () => setText(text, data.json || "");
  };

  const build = (tab) => {
    flush();
    forms = [];
    body.replaceChildren();
    const make = { materia, socket, ways, exits, json }[tab] || (data.kind === "loop" ? loopForm : plain);
    redraw = make(body);
  };

  const button_ = (words, about, done, attrs = {}) => button(words, about, done, { class: "mnb-b mnb-small", ...attrs });
  const drawActs = () => {
    const many = data.kind === "marked";
    const held = acts.contains(document.activeElement) ? document.activeElement.dataset.act : null;
    const made = [];
    const put = (name, words, about, done, attrs) => made.push(button_(words, about, done, { "data-act": name, ...attrs }));
    if (data.kind === "socket") {
      if (!data.entry) put("entry", "Make entry", "a cast starts here", () => act("entry", { id: data.of[1] }));
      put("mark", data.isMarked ? "Unmark" : "Mark", "mark it, to make a loop of all that are marked", () => act("mark", { id: data.of[1] }), { "aria-pressed": data.isMarked ? "true" : "false" });
    }
    if (data.marked?.length) put("loop", `Make loop (${data.marked.length})`, "make a loop of the marked sockets", () => act("loop"), { class: "mnb-b mnb-small mnb-main" });
    if (data.kind === "socket" || many) put("twice", "Duplicate", "a copy of it beside it (Ctrl-D)", () => act("duplicate"));
    if (data.kind !== "loadout") put("away", "Remove", "remove it (Delete)", () => act("delete", many ? {} : { what: data.of }), { class: "mnb-b mnb-small mnb-bad" });
    if (data.marked?.length) put("clear", "Clear", "mark none", () => act("marquee", { ids: [] }));
    acts.replaceChildren(...made);
    if (held) (made.find((one) => one.dataset.act === held) || title).focus();
  };

  const drawTabs = (tab) => {
    const names = DESIGN_TABS[data.kind] || ["form"];
    const count = { ways: data.ways?.length, exits: data.exits?.length };
    const held = tabs.contains(document.activeElement);
    tabs.replaceChildren(...names.map((name) => {
      const made = h("button", { type: "button", role: "tab", "aria-selected": name === tab ? "true" : "false", tabindex: name === tab ? "0" : "-1", class: "mnb-d-tab", "data-tab": name }, DESIGN_TITLES[name] + (count[name] !== undefined ? ` ${count[name]}` : ""));
      made.addEventListener("click", () => choose(name));
      return made;
    }));
    tabs.hidden = names.length < 2;
    if (held) tabs.querySelector("[aria-selected=true]")?.focus();
  };
  tabs.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    const all = [...tabs.children];
    const next = all[(all.indexOf(document.activeElement) + by + all.length) % all.length];
    next?.click();
    tabs.querySelector("[aria-selected=true]")?.focus();
  });
  const choose = (name) => {
    chosen[data.kind] = name;
    draw();
  };

  const draw = () => {
    const names = DESIGN_TABS[data.kind] || ["form"];
    const tab = names.includes(chosen[data.kind]) ? chosen[data.kind] : names[0];
    const now = JSON.stringify([data.kind, data.of, tab, data.materia?.id, data.materia?.work, (data.materia?.variables || []).map((one) => one.name), data.targets, data.members && data.kind === "loop" ? data.members : 0]);
    const held = body.contains(document.activeElement);
    if (now !== built) {
      if (built && JSON.parse(built)[1]?.join() !== data.of.join()) disarm();
      built = now;
      build(tab);
    }
    drawTabs(tab);
    redraw();
    if (held && !body.contains(document.activeElement) && document.activeElement === document.body) body.focus({ preventScroll: true });
  };

  return {
    update(slice) {
      if (!slice.inspector) return;
      listen();
      data = slice.inspector;
      root.dataset.of = JSON.stringify(data.of);
      const options = JSON.stringify(slice.parts);
      if (seek.dataset.told !== options) {
        seek.dataset.told = options;
        seek.replaceChildren(h("option", { value: "" }, "the loadout itself"), ...slice.parts.map((one) => h("option", { value: JSON.stringify(one.what) }, one.words)));
      }
      seek.value = data.kind === "loadout" || data.kind === "marked" ? "" : JSON.stringify(data.of);
      setText(title, data.title);
      setText(sub, data.sub);
      setAttr(mark, "data-work", data.work || data.kind);
      drawActs();
      draw();
    },
    unsent: () => forms.flatMap((one) => one.unsent()),
    destroy() {
      disarm();
      flush();
      listening?.removeEventListener("mnb-flush", flush);
      host.replaceChildren();
    },
  };
}

let designRadioCount = 0;

function designWay(way, place, act) {
  const words = `${way.when} → ${way.to}${way.most ? `, at most ${way.most}` : ""}`;
  const told = way.from ? `${way.from}: ${words}` : way.loop ? `exit of ${way.loop}: ${words}` : words;
  return h("li", { class: "mnb-d-way" },
    button(told, "select it", () => act("pick", { what: way.what, keep: true }), { class: `mnb-d-link${way.tone ? ` mnb-t-${way.tone}` : ""}` }),
    way.place === null ? null : button("↑", "look at it earlier", () => act("order", { of: way.what, by: -1 }), { class: "mnb-x", "aria-label": `${words}: earlier`, "aria-disabled": place === 0 ? "true" : null }),
    button("×", "remove it", () => act("delete", { what: way.what }), { class: "mnb-x", "aria-label": `${words}: remove` }));
}
