/** Says under a field what is wrong with what is typed in it, as the kernel finds it. */
import { h, clear, setAttr } from "./dom.js";

/**
 * @param {HTMLTextAreaElement|HTMLInputElement} field
 * @param {object} send
 * @param {() => string} what `reply`, `correction` or `value`
 * @param {string} fine what to say of a text that would be taken
 * @param {(fine: boolean) => void} told
 */
export function checkedField(field, send, what, fine, told = () => {}) {
  const host = h("div", { class: "mnb-check", role: "status" });
  let timer = null, asked = 0;
  const clearCheck = () => {
    clear(host);
    setAttr(field, "aria-invalid", null);
  };
  const ask = async () => {
    const mine = ++asked;
    const text = field.value;
    if (!text.trim()) {
      clearCheck();
      told(false);
      return;
    }
    const found = await send.ask("check", { text, what: what() });
    if (mine !== asked) return;
    clear(host);
    setAttr(field, "aria-invalid", found.fine ? null : "true");
    if (found.advice) host.append(h("p", { class: "mnb-p mnb-t-bad" }, `Not JSON yet: ${found.advice}`));
    for (const [path, message, fix] of found.issues || []) {
      host.append(h("p", { class: "mnb-p mnb-t-bad" }, `✖ ${path}: ${message}`, fix && h("span", { class: "mnb-dim" }, ` ${fix}`)));
    }
    if (found.fine) host.append(h("p", { class: "mnb-p mnb-t-good" }, `✓ ${fine}`));
    told(Boolean(found.fine));
  };
  field.addEventListener("input", () => {
    asked += 1;
    clearTimeout(timer);
    timer = setTimeout(ask, 180);
  });
  return { host, clear: clearCheck, ask };
}
