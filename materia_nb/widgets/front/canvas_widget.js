/** The canvas as a separate widget next to the Cytoscape widget on which it draws. */
import { Canvas } from "./canvas.js";
import { sendMessage } from "./wire.js";

/** Wait until an element is in the page, and return its closest ancestor that matches a selector. @param {HTMLElement} el @param {string} selector @returns {Promise<HTMLElement>} */
const placedIn = (el, selector) =>
  new Promise((resolve) => {
    const watch = new ResizeObserver(() => {
      const ancestor = /** @type {HTMLElement|null} */ (el.closest(selector));
      if (!ancestor) return;
      watch.disconnect();
      resolve(ancestor);
    });
    watch.observe(el);
  });

/**
 * Return the Cytoscape object that draws in an element. It belongs to the widget view inside the element, and exists once this view
 * is displayed. ipywidgets defines the field `views`, and ipycytoscape the field `cytoscape_obj`.
 * @param {Model} model
 * @param {HTMLElement} graph
 * @returns {Promise<Cy>}
 */
async function cytoscapeIn(model, graph) {
  const drawing = await model.widget_manager.get_model(model.get("drawing").slice("IPY_MODEL_".length));
  return new Promise((resolve) => {
    for (const coming of Object.values(drawing.views)) {
      Promise.resolve(coming).then(async (view) => {
        await view.displayed;
        if (graph.contains(view.el)) resolve(view.cytoscape_obj);
      });
    }
  });
}

/** @param {{model: Model}} props */
function initialize({ model }) {
  // Stored in the model for views that are created later.
  model.on("msg:custom", (message) => message?.kind === "look" && Object.assign(model.get("look"), message.changed));
}

/** @param {{model: Model, el: HTMLElement}} props */
function render({ model, el }) {
  el.classList.add("mnb-over-canvas");
  const fileRequests = new Set(), ends = [() => {}];
  let ended = false;
  const on = (/** @type {string} */ name, /** @type {(message: any) => void} */ act) => {
    model.on(name, act);
    ends.push(() => model.off(name, act));
  };
  placedIn(el, ".mnb-graph").then(async (graph) => {
    if (ended) return;
    const canvas = new Canvas(graph, el, (kind, ...[fields]) => {
      if (kind === "svg" || kind === "play") fileRequests.add(canvas.token);
      sendMessage(model, { kind, ...fields });
    });
    ends.push(() => canvas.destroy());
    on("change:scene", () => canvas.update({ look: model.get("look"), scene: model.get("scene") }));
    on("change:flags", () => canvas.update({ flags: model.get("flags") }));
    on("msg:custom", (message) => {
      if (message?.kind === "look") canvas.update({ changed: message.changed });
      if (fileRequests.has(message?.token)) canvas.tools.saveText(message);
    });
    canvas.update({ fixed: model.get("fixed"), look: model.get("look"), scene: model.get("scene"), flags: model.get("flags") });
    const cy = await cytoscapeIn(model, graph);
    if (!ended) canvas.attach(cy);
  });
  return () => {
    ended = true;
    for (const end of ends) end();
  };
}

export default { initialize, render };
