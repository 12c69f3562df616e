/** The loader in every widget, which loads the front end from the model that holds it and draws the view of the widget. */

/** The front ends of this page by version, each loaded once. @type {Map<string, Promise<any>>} */
const loaded = (/** @type {any} */ (globalThis).materiaFronts ??= new Map());

/** @param {any} model */
async function load(model) {
  const code = await model.widget_manager.get_model(model.get("code").slice("IPY_MODEL_".length));
  const version = code.get("version");
  if (!loaded.has(version)) loaded.set(version, unpack(code.get("packed")));
  return (await loaded.get(version)).widgets[model.get("view")];
}

/** @param {string} packed a module, gzip in base64 */
async function unpack(packed) {
  const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
  const text = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  const address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  const module = await import(address);
  URL.revokeObjectURL(address);
  const sheet = document.createElement("style");
  sheet.textContent = module.styles;
  document.head.append(sheet);
  return module;
}

export default {
  /** @param {{model: any}} props */
  initialize: async (props) => (await load(props.model)).initialize?.(props),
  /** @param {{model: any, el: HTMLElement}} props */
  render: async (props) => (await load(props.model)).render(props),
};
