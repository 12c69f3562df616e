/**
 * The picture of a prediction question: a click on a socket is a guess. Keyboard users press the buttons below the picture, so
 * the picture cannot be focused. The SVG is parsed as XML, and all executable content is removed.
 */

/** @param {string} text @returns {Element|null} */
function parsed(text) {
  const root = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  if (root.nodeName !== "svg") return null;
  for (const element of root.querySelectorAll("script, foreignObject, a")) element.remove();
  return document.importNode(root, true);
}

export default {
  /** @param {{model: any, el: HTMLElement}} props */
  render({ model, el }) {
    el.classList.add("mnb-question");
    let drawnNumber = 0;
    const draw = () => {
      drawnNumber = model.get("number");
      el.replaceChildren(parsed(model.get("svg")) ?? "");
      const targets = model.get("targets");
      for (const socket of el.querySelectorAll("[data-socket]")) socket.classList.toggle("mnb-place", targets.includes(socket.getAttribute("data-socket")));
    };
    const click = (/** @type {MouseEvent} */ event) => {
      const target = event.target instanceof Element ? event.target.closest(".mnb-place") : null;
      if (target) model.send({ kind: "guess", target: target.getAttribute("data-socket"), number: drawnNumber });
    };
    draw();
    el.addEventListener("click", click);
    model.on("change:svg change:number", draw);
    return () => {
      el.removeEventListener("click", click);
      model.off("change:svg change:number", draw);
    };
  },
};
