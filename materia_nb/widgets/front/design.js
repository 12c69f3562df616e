/** Design mode alone: palette, inspector, dock and bar round the graph, as `%materia design` shows them. */
import { h, setText } from "./dom.js";
import { splitter } from "./splitter.js";
import { closeMenu } from "./menu.js";
import { designBarPart, designKeys } from "./design_bar.js";
import { palettePart } from "./palette.js";
import { designInspectorPart } from "./design_inspector.js";
import { problemsPart } from "./problems.js";

function designView({ model, el }) {
  const send = (kind, values = {}) => model.send({ kind, ...values });
  el.classList.add("mnb-front");
  el.setAttribute("data-lm-suppress-shortcuts", "true");
  const cell = (name, attrs) => h("div", { class: `mnb-${name}`, ...attrs });
  const bar = cell("bar", { role: "toolbar", "aria-label": "design" });
  const palette = cell("palette", { role: "region", "aria-label": "palette" });
  const inspector = cell("inspector", { role: "region", "aria-label": "inspector" });
  const dock = cell("dock", { role: "region", "aria-label": "problems and changes" });
  const side = cell("d-side");
  inspector.append(side);
  const gone = cell("gone", { role: "alert" });
  el.append(bar, palette, inspector, dock, gone);
  const parts = [designBarPart(bar, send), palettePart(palette, send), designInspectorPart(side, send), problemsPart(dock, send)];
  const splitters = [splitter(el, "columns", send), splitter(el, "rows", send)];
  let unkey = designKeys(el, send);
  el.addEventListener("keydown", (event) => event.stopPropagation());
  let box = null;
  let selected = "";
  const mark = () => {
    const now = JSON.stringify(model.get("design").selected || null);
    if (!box || now === selected) return;
    selected = now;
    box.dispatchEvent(new CustomEvent("mnb-selected", { detail: JSON.parse(now) }));
  };
  const picked = (event) => {
    const { kind, id, add } = event.detail || {};
    send("pick", { what: kind ? [kind, id] : null, add: add === true });
  };
  const attach = () => {
    const found = el.closest(".mnb-surface");
    if (!found || found === box) return;
    box = found;
    box.dataset.mode = "design";
    box.setAttribute("data-lm-suppress-shortcuts", "true");
    box.addEventListener("mnb-pick", picked);
    const before = unkey;
    const outer = designKeys(box, send);
    unkey = () => (before(), outer());
    mark();
  };
  const watch = new ResizeObserver(() => {
    attach();
    if (box) box.toggleAttribute("data-narrow", box.clientWidth <= 640);
  });
  watch.observe(bar);
  const update = () => {
    attach();
    const data = model.get("design") || {};
    for (const part of parts) part.update(data);
    if (data.bar) setText(gone, `The kernel of this design is gone. Run its cell again: ${data.bar.left}`);
    mark();
  };
  model.on("change:design", update);
  update();
  return () => {
    watch.disconnect();
    closeMenu();
    model.off("change:design", update);
    box?.removeEventListener("mnb-pick", picked);
    unkey();
    for (const part of [...parts, ...splitters]) part.destroy?.();
    el.replaceChildren();
  };
}

export default { render: designView };
