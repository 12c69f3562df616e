/** The inspector: shows the selected element. */
import { h, button, focused, isNew, isTyping, redraw, setText, setAttr } from "./dom.js";
import { openMenu } from "./menu.js";
import { askWhere } from "./bar.js";
import { tabRow } from "./tabs.js";
import { drawBlocks } from "./blocks.js";
import { answerPart } from "./answer.js";
import { promptPart } from "./prompts.js";
import { statePart } from "./statetree.js";

/** @param {HTMLElement} host @param {PanelSender} send @param {Shell} shell @returns {Part} */
export function inspectorPart(host, send, shell) {
  const swatch = h("span", { class: "mnb-swatch", "aria-hidden": "true" }), name = h("h3", { class: "mnb-name" });
  const chips = h("div", { class: "mnb-under" }), acts = h("span", { class: "mnb-row mnb-end" });
  const tabs = tabRow("inspector", (tab) => send("tab", { tab }));
  host.append(h("div", { class: "mnb-title" }, swatch, name, acts), chips, tabs.row, tabs.panel);
  /** @type {Record<string, (box: HTMLElement) => Part>} */
  const make = {
    answer: (box) => answerPart(box, send, shell),
    prompt: (box) => promptPart(box, send),
    state: (box) => statePart(box, send),
    blocks: (box) => ({ update: (content) => drawBlocks(box, content.blocks, send) }),
  };
  /** @type {Map<string, {box: HTMLElement, part: Part}>} */
  const parts = new Map();
  const small = { class: "mnb-b mnb-small" };
  /** @param {Title} title @returns {Child} */
  const actsOf = ({ id, kind, step, present, stops = [], answered, pinned }) => [
    step !== undefined || kind === "step" ? button("Now", "back to the present", () => send("now"), small)
      : !present && button("Now", "show the current position of the cast", () => send("select", { element: null }), small),
    stops.length > 0 && button("●", "breakpoints of this part", (event) => openMenu(/** @type {HTMLElement} */ (event.currentTarget), [
      { words: "Runs stop" },
      ...stops.map(([label, breakpoint, set]) => ({ words: `${set ? "✓ " : ""}${label}`, act: () => send("break", { breakpoint }) })),
      ...stops.slice(0, 1).map(([label, breakpoint]) => ({ words: `${label}, only when…`, act: () => askWhere(send, shell, breakpoint) })),
    ], { label: "breakpoints" }), { ...small, "aria-label": "breakpoint", "aria-haspopup": "menu", "aria-pressed": String(stops.some((stop) => stop[2])) }),
    id && (answered || pinned) && button(pinned ? "Unpin" : "Pin", pinned ? "ask the agent again from now on" : "use the last output as the answer from now on", () => send("pin", { socket: id }), { ...small, "aria-pressed": String(pinned) }),
  ];
  let opened = "", held = /** @type {Inspector|null} an update that opens another tab, which waits while the user types */ (null);
  tabs.panel.addEventListener("focusout", ({ relatedTarget }) => held && !tabs.panel.contains(/** @type {Node|null} */ (relatedTarget)) && inspector.update(held));
  const inspector = {
    /** @param {Inspector} data */
    update(data) {
      const { title, tabs: all, tab, content } = data;
      if (!title) return;
      held = opened !== tab && isTyping(focused(tabs.panel)) ? data : null;
      if (held) return tabs.update(all, opened);
      opened = tab;
      setAttr(swatch, "data-kind", title.kind);
      setText(name, title.name);
      setAttr(name, "title", title.name);
      setText(chips, title.chips.join(" · "));
      if (isNew(acts, title)) redraw(acts, () => actsOf(title));
      tabs.update(all, tab);
      tabs.row.hidden = all.length < 2;
      if (!parts.has(content.is)) {
        const box = h("div", { class: "mnb-content" });
        tabs.panel.append(box);
        parts.set(content.is, { box, part: make[content.is](box) });
      }
      for (const [kind, view] of parts) view.box.hidden = kind !== content.is;
      parts.get(content.is)?.part.update(content);
      if (isNew(tabs.panel, [title.name, title.step, tab])) tabs.panel.scrollTop = 0;
    },
    unsent: () => [...parts.values()].flatMap((entry) => entry.part.unsent?.() ?? []),
  };
  return inspector;
}
