/** Says under a field what is wrong with what is typed in it, as the kernel finds it. */
import { h, refill, setAttr } from "./dom.js";

/**
 * @param {HTMLTextAreaElement|HTMLInputElement} field
 * @param {Talk} send
 * @param {"reply"|"correction"|"value"|"by_hand"} what
 * @param {string} fine what to say of a text that would be taken
 * @param {(fine: boolean) => void} [checked]
 */
export function checkedField(field, send, what, fine, checked = () => {}) {
  const host = h("div", { class: "mnb-check", role: "status" });
  let timer = 0, asked = 0;
  const clear = () => {
    refill(host);
    setAttr(field, "aria-invalid", null);
  };
  const ask = async () => {
    const mine = ++asked, text = field.value;
    if (!text.trim()) {
      clear();
      return checked(false);
    }
    const found = await send.ask("check", { text, what });
    if (mine !== asked) return;
    setAttr(field, "aria-invalid", found.fine ? null : "true");
    /** @type {[string, string, string?][]} */
    const issues = found.advice ? [] : found.issues ?? [];
    refill(host,
      found.advice && h("p", { class: "mnb-p mnb-t-bad" }, `Not JSON yet: ${found.advice}`),
      issues.map(([path, message, fix]) => h("p", { class: "mnb-p mnb-t-bad" }, `✖ ${path}: ${message}`, fix && h("span", { class: "mnb-dim" }, ` ${fix}`))),
      found.fine && h("p", { class: "mnb-p mnb-t-good" }, `✓ ${fine}`));
    checked(Boolean(found.fine));
  };
  field.addEventListener("input", () => {
    asked += 1;
    clearTimeout(timer);
    timer = setTimeout(ask, 180);
  });
  return { host, clear };
}
