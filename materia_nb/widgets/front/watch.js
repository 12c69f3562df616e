/** Watched state paths: their values at the selected moment, and the steps that changed them. */
import { h, button, isNew, onKeys, redraw } from "./dom.js";
import { counted } from "./words.js";

/** @typedef {{path: string, now: string, stops: boolean, mine: boolean, changes: number, rows: [step: number, socket: string, value: string][]}} WatchedPath */

/** @param {HTMLElement} host @param {PanelSender} send @param {HTMLElement} controls @returns {Part} */
export function watchPart(host, send, controls) {
  const field = h("input", { class: "mnb-in mnb-find", placeholder: "state path, such as plan.title", "aria-label": "state path to watch" });
  const add = () => {
    if (field.value.trim()) send("follow", { path: field.value.trim(), on: true });
    field.value = "";
  };
  onKeys(field, { Enter: add });
  controls.append(field, button("Watch", "show the value at this path and the steps that change it", add, { class: "mnb-b mnb-small" }));
  host.classList.add("mnb-dockread");
  const open = new Set();
  /** @param {WatchedPath} watched @returns {Child} */
  const line = ({ path, now, stops, mine, changes, rows }) => {
    const history = h("details", {}, h("summary", { "data-key": `history ${path}` }, changes ? `${counted(changes, "change")}, the last in step ${rows[0][0]} · ${rows[0][1]}` : "no step changed it"),
      h("div", { class: "mnb-watchrows" }, rows.map(([step, socket, value]) => [
        button(String(step), `show everything as it was after step ${step}`, () => send("look", { step }), { class: "mnb-x", "aria-label": `show step ${step}` }), h("span", { class: "mnb-dim" }, socket), h("span", { class: "mnb-code" }, value)])));
    history.open = open.has(path);
    history.addEventListener("toggle", () => void (history.open ? open.add(path) : open.delete(path)));
    return h("div", { class: "mnb-watch" }, h("span", { class: "mnb-key" }, path), h("span", { class: "mnb-code mnb-cut", title: now }, now),
      button("Stop on change", "runs stop after a step that changes it", () => send("watch", { path }), { class: "mnb-b mnb-small", "aria-pressed": String(stops), "data-key": `stop ${path}` }),
      mine ? button("×", `stop watching ${path}`, () => send("follow", { path, on: false }), { class: "mnb-x", "aria-label": `stop watching ${path}` }) : h("span", {}), history);
  };
  return {
    /** @param {{watched?: WatchedPath[]}} data */
    update({ watched = [] }) {
      if (isNew(host, watched)) redraw(host, () => (watched.length ? watched.map(line) : h("p", { class: "mnb-p mnb-dim" }, "No watches. Enter a state path such as plan.title, or click Watch next to a value in State.")));
    },
  };
}
