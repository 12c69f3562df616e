/** The palette of design mode: every materia, to be clicked or dragged into the graph; and new ones. */
import { h, button, setText, MATERIA_TYPE } from "./dom.js";

/**
 * @param {HTMLElement} host
 * @param {(kind: string, values?: object) => void} send
 */
export function palettePart(host, send) {
  const find = h("input", { class: "mnb-in mnb-d-find", type: "search", placeholder: "search, Enter adds", "aria-label": "search materia; Enter adds the one that is named", autocomplete: "off", spellcheck: "false" });
  const none = h("div", { class: "mnb-dim mnb-d-none", hidden: true });
  const groups = h("div", { class: "mnb-d-groups" });
  const asked = h("div", { class: "mnb-d-new", hidden: true });
  let data = { groups: [] };
  let drawn = "";
  const shown = () => [...groups.querySelectorAll(".mnb-d-entry")].filter((one) => !one.hidden);

  const filter = () => {
    const words = find.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    for (const one of groups.querySelectorAll(".mnb-d-entry")) one.hidden = !words.every((word) => one.dataset.sought.includes(word));
    for (const group of groups.children) group.hidden = ![...group.querySelectorAll(".mnb-d-entry")].some((one) => !one.hidden);
    none.hidden = shown().length > 0;
    setText(none, find.value.trim() ? "none is called so: Enter makes one" : "there are none yet");
  };
  const add = (materia) => {
    send("add", { materia });
    find.value = "";
    filter();
  };
  find.addEventListener("input", filter);
  find.addEventListener("focus", () => find.select());
  find.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && find.value) {
      find.value = "";
      filter();
      event.stopPropagation();
    } else if (event.key === "ArrowDown") {
      shown()[0]?.focus();
      event.preventDefault();
    } else if (event.key === "Enter" && find.value.trim()) {
      const typed = find.value.trim();
      const found = shown();
      const exact = data.groups.flatMap((one) => one.entries).find((one) => one.id.toLowerCase() === typed.toLowerCase());
      if (exact) add(exact.id);
      else if (found.length === 1) add(found[0].dataset.materia);
      else if (!found.length) add(typed);
      else found[0].focus();
    }
  });
  groups.addEventListener("keydown", (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!by) return;
    const all = shown();
    const next = all.indexOf(document.activeElement) + by;
    (next < 0 ? find : all[Math.min(next, all.length - 1)])?.focus();
    event.preventDefault();
  });

  const entry = (one) => {
    const made = button("", one.about || one.id, () => add(one.id), {
      class: "mnb-d-entry",
      draggable: "true",
      "data-materia": one.id,
      "data-sought": `${one.id} ${one.label} ${one.about} ${one.kind}`.toLowerCase(),
      "data-work": one.kind,
      "aria-label": `add ${one.id}, ${one.kind}${one.generator ? ", makes work items" : ""}`,
    });
    const mark = h("span", { class: "mnb-d-mark", "data-work": one.kind, "data-generator": one.generator ? "yes" : null, "aria-hidden": "true" });
    if (one.colour) mark.style.background = one.colour;
    made.append(
      mark,
      h("span", { class: "mnb-d-name" }, one.label, one.label !== one.id ? h("small", { class: "mnb-dim" }, ` ${one.id}`) : null),
      one.placed ? h("small", { class: "mnb-dim" }, `×${one.placed}`) : "",
      h("span", { class: "mnb-d-about" }, one.about),
    );
    made.addEventListener("dragstart", (event) => {
      event.dataTransfer.setData(MATERIA_TYPE, one.id);
      event.dataTransfer.setData("text/plain", one.id);
      event.dataTransfer.effectAllowed = "copy";
    });
    return made;
  };

  const askFor = (what) => {
    const name = h("input", { class: "mnb-in", placeholder: `name of the ${what}`, "aria-label": `name of the new ${what}`, autocomplete: "off" });
    const done = () => {
      if (!name.value.trim()) return name.focus();
      send("make", { what, id: name.value.trim(), then: { kind: "add", materia: name.value.trim() } });
      asked.hidden = true;
      find.focus();
    };
    name.addEventListener("keydown", (event) => {
      if (event.key === "Enter") done();
      if (event.key === "Escape") {
        asked.hidden = true;
        find.focus();
        event.stopPropagation();
      }
    });
    asked.replaceChildren(name, button("Make", `make the ${what} and place it`, done, { class: "mnb-b mnb-small mnb-main" }));
    asked.hidden = false;
    name.focus();
  };
  const news = h("div", { class: "mnb-d-news" },
    button("+ agent", "make a new agent and place it", () => askFor("agent"), { class: "mnb-b mnb-small" }),
    button("+ utility", "make a new utility and place it", () => askFor("utility"), { class: "mnb-b mnb-small" }));
  host.append(h("div", { class: "mnb-d-palette" }, find, news, asked, none, groups));
  return {
    update(slice) {
      data = slice.palette || { groups: [] };
      const now = JSON.stringify(data);
      if (now === drawn) return;
      drawn = now;
      const held = groups.contains(document.activeElement) ? document.activeElement.dataset.materia : null;
      groups.replaceChildren(
        ...data.groups.map((group, place) => {
          const title = h("div", { class: "mnb-d-group", id: `mnb-d-group-${place}` }, group.title);
          return h("div", { role: "group", "aria-label": group.title }, title, group.entries.map(entry));
        }),
      );
      filter();
      if (held !== null) (shown().find((one) => one.dataset.materia === held) || find).focus();
    },
    destroy() {
      host.replaceChildren();
    },
  };
}
