/** The inspector: one thing at a time, the one that is selected. */
import { h, clear, button, setText, setAttr } from "./dom.js";
import { openMenu } from "./menu.js";
import { tabRow } from "./tabs.js";
import { drawBlocks } from "./blocks.js";
import { answerPart, correctBox } from "./answer.js";
import { promptPart } from "./prompts.js";
import { statePart } from "./statetree.js";

export function inspectorPart(host, send, shell) {
  const swatch = h("span", { class: "mnb-swatch", "aria-hidden": "true" });
  const name = h("h3", { class: "mnb-name" });
  const chips = h("div", { class: "mnb-under" });
  const acts = h("span", { class: "mnb-row mnb-end" });
  const tabs = tabRow("inspector", (tab) => send("tab", { tab }));
  const parts = {};
  const make = {
    answer: (box) => answerPart(box, send, shell),
    prompt: (box) => promptPart(box, send),
    state: (box) => statePart(box, send),
    blocks: (box) => {
      const read = h("div", {});
      const correct = correctBox(send);
      box.append(read, correct.node);
      return {
        update(content) {
          drawBlocks(read, content.blocks, send);
          correct.update(content.correct);
        },
      };
    },
  };
  host.append(h("div", { class: "mnb-title" }, swatch, name, acts), chips, tabs.row, tabs.panel);
  let madeActs = "", shown = null;
  return {
    update(data) {
      const title = data.title;
      if (!title) return;
      setAttr(swatch, "data-kind", title.kind);
      setText(name, title.name);
      setAttr(name, "title", title.name);
      setText(chips, title.chips.join(" · "));
      const now = JSON.stringify(title);
      if (now !== madeActs) {
        madeActs = now;
        clear(acts);
        if (title.step !== undefined || title.kind === "step") acts.append(button("Now", "back to the present", () => send("now"), { class: "mnb-b mnb-small" }));
        else if (!title.present) acts.append(button("Now", "show where the cast is", () => send("select", { element: null }), { class: "mnb-b mnb-small" }));
        if (title.stops?.length) {
          const stop = button("●", "where runs stop here", () => openMenu(stop, [
            { words: "Runs stop" },
            ...title.stops.map(([words, breakpoint, set]) => ({ words: `${set ? "✓ " : ""}${words}`, act: () => send("break", { breakpoint }) })),
          ], { label: "breakpoints" }), { class: "mnb-b mnb-small", "aria-label": "breakpoint", "aria-haspopup": "menu", "aria-pressed": String(title.stops.some((one) => one[2])) });
          acts.append(stop);
        }
        if (title.id) {
          if (title.answered || title.pinned) acts.append(button(title.pinned ? "Unpin" : "Pin", title.pinned ? "let it be asked again" : "let its last output answer from now on", () => send("pin", { socket: title.id }), { class: "mnb-b mnb-small", "aria-pressed": String(title.pinned) }));
        }
      }
      tabs.update(data.tabs, data.tab);
      tabs.row.hidden = data.tabs.length < 2;
      const content = data.content;
      if (!parts[content.is]) {
        const box = h("div", { class: "mnb-content" });
        tabs.panel.append(box);
        parts[content.is] = { box, part: make[content.is](box) };
      }
      for (const [kind, one] of Object.entries(parts)) one.box.hidden = kind !== content.is;
      parts[content.is].part.update(content);
      const place = JSON.stringify([title.name, title.step, data.tab]);
      if (shown !== place) {
        shown = place;
        tabs.panel.scrollTop = 0;
      }
    },
    unsent: () => Object.values(parts).flatMap((one) => one.part.unsent?.() || []),
    destroy() {},
  };
}
