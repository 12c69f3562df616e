/** Messages to the kernel, and requests with answers. */

/** Send a message. If there is no kernel, the message is lost, and a bar reports this. @param {Model} model @param {Data} message */
export function sendMessage(model, message) {
  try {
    model.send(message);
  } catch (error) {
    console.warn("materia_nb: no kernel to send to", error);
  }
}

/**
 * Report a missing kernel as soon as the user touches one of its widgets. JupyterLab marks widgets when a kernel restarts or
 * dies, but not when it is shut down, and then a click would be lost silently.
 * @param {Model} model @param {HTMLElement} surface @param {AbortSignal} [signal] ends it
 */
export function markWhenGone(model, surface, signal) {
  const look = (/** @type {Event} */ event) => {
    const manager = model.widget_manager;
    if (!("kernel" in manager) || manager.kernel) return;
    surface.classList.add("jupyter-widgets-disconnected");
    event.preventDefault();
    event.stopPropagation();
  };
  for (const touch of ["pointerdown", "keydown"]) surface.addEventListener(touch, look, { capture: true, signal });
}

/**
 * Return a function that links to files relative to the notebook's folder: JupyterLab and Notebook open them like files in their file
 * list. Return undefined in other front ends. Links never leave the folder of the server.
 * @param {Model} model
 * @returns {LinkTo|undefined}
 */
export function linksFrom(model) {
  const notebook = model.widget_manager?.context?.path;
  if (notebook === undefined || !document.querySelector(".jp-NotebookPanel")) return undefined;
  return (file) => {
    /** @type {string[]} */
    const path = [];
    for (const part of [...notebook.split("/").slice(0, -1), ...file.split("/")]) {
      if (part === ".." && !path.pop()) return null;
      if (part && part !== "." && part !== "..") path.push(part);
    }
    const config = JSON.parse(document.getElementById("jupyter-config-data")?.textContent || "{}");
    return {
      href: `${config.baseUrl ?? "/"}files/${path.map(encodeURIComponent).join("/")}`, target: "_blank", rel: "noopener",
      "data-commandlinker-command": "docmanager:open", "data-commandlinker-args": JSON.stringify({ path: path.join("/") }),
    };
  };
}

/**
 * Return the sender of a panel's messages and questions. A token distinguishes the answers from answers to other views.
 * Every message of a cast carries the digest of the frame; the kernel refuses an action on an outdated frame.
 * @param {Model} model
 * @param {(message: Data) => void} [sent] called with each message
 * @returns {Send & {ask(kind: string, values?: Data): Promise<Data>, linkTo?: LinkTo}}
 */
export function makeTalk(model, sent = () => {}) {
  /** @type {Map<string, (message: Data) => void>} */
  const waiting = new Map();
  model.on("msg:custom", (message) => {
    waiting.get(message?.token)?.(message);
    waiting.delete(message?.token);
  });
  const send = (/** @type {string} */ kind, /** @type {Data} */ values = {}) => {
    const message = { kind, ...values };
    sent(message);
    const { mode, identity } = model.get("surface") ?? {};
    sendMessage(model, identity && mode !== "design" ? { ...message, identity } : message);
  };
  return Object.assign(send, {
    linkTo: linksFrom(model),
    ask: (/** @type {string} */ kind, /** @type {Data} */ values = {}) =>
      new Promise((/** @type {(message: Data) => void} */ resolve) => {
        const token = crypto.getRandomValues(new Uint32Array(2)).join("-");
        waiting.set(token, resolve);
        send(kind, { ...values, token });
      }),
  });
}
