/** Sending messages to the kernel, and asking it. */

/** Send a message; without a kernel nobody hears it, and a bar says so. @param {Model} model @param {Told} message */
export function sendMessage(model, message) {
  try {
    model.send(message);
  } catch (error) {
    console.warn("materia_nb: no kernel to send to", error);
  }
}

/**
 * What sends a panel's messages, and asks: a question has a token, by which its answer is known among those of other views.
 * @param {Model} model
 * @param {(message: Told) => void} [sent] told of each message
 * @returns {Send & {ask(kind: string, values?: Told): Promise<Told>}}
 */
export function makeTalk(model, sent = () => {}) {
  /** @type {Map<string, (message: Told) => void>} */
  const waiting = new Map();
  model.on("msg:custom", (message) => {
    waiting.get(message?.token)?.(message);
    waiting.delete(message?.token);
  });
  const send = (/** @type {string} */ kind, /** @type {Told} */ values = {}) => {
    const message = { kind, ...values };
    sent(message);
    sendMessage(model, message);
  };
  return Object.assign(send, {
    ask: (/** @type {string} */ kind, /** @type {Told} */ values = {}) =>
      new Promise((/** @type {(message: Told) => void} */ resolve) => {
        const token = crypto.getRandomValues(new Uint32Array(2)).join("-");
        waiting.set(token, resolve);
        send(kind, { ...values, token });
      }),
  });
}
