/** The canvas as a widget of its own, beside the cytoscape that it fills. */
import { canvasPart } from "./canvas.js";
import { sendMessage } from "./dom.js";

function canvasInitialize({ model }) {
  // Kept in the model, so that a view which comes later sees it.
  model.on("msg:custom", (message) => {
    if (message?.kind === "look") Object.assign(model.get("look"), message.changed);
  });
}

function canvasRender({ model, el }) {
  el.classList.add("mnb-over-canvas");
  let part = null, ended = false;
  const told = [];
  const on = (name, act) => {
    model.on(name, act);
    told.push([name, act]);
  };
  const start = () => {
    if (ended) return;
    if (!el.closest(".mnb-graph")) return void setTimeout(start, 20); // not in the page yet
    const seen = new Set();
    part = canvasPart(el, (kind, values = {}) => {
      if (values.token) seen.add(values.token);
      sendMessage(model, { kind, ...values });
    });
    const all = () => ({ fixed: model.get("fixed"), look: model.get("look"), scene: model.get("scene"), flags: model.get("flags") });
    on("change:scene", () => part.update({ look: model.get("look"), scene: model.get("scene") }));
    on("change:flags", () => part.update({ flags: model.get("flags") }));
    on("msg:custom", (message) => {
      if (message?.kind === "look") part.update({ changed: message.changed });
      if (message?.kind === "svg" && seen.has(message.token)) part.update({ svg: message.svg });
    });
    part.update(all());
  };
  start();
  return () => {
    ended = true;
    for (const [name, act] of told) model.off(name, act);
    part?.destroy();
  };
}

export default { initialize: canvasInitialize, render: canvasRender };
