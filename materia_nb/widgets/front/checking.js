/** Validates a field in the kernel and shows the problems below it. */
import { h, refill, setAttr } from "./dom.js";

/**
 * @param {HTMLTextAreaElement|HTMLInputElement} field
 * @param {PanelSender} send
 * @param {"reply"|"correction"|"value"|"by_hand"} kind
 * @param {string} fine the message for a valid text
 * @param {(fine: boolean) => void} [checked]
 */
export function checkedField(field, send, kind, fine, checked = () => {}) {
  const host = h("div", { class: "mnb-check", role: "status" });
  let timer = 0, latest = 0;
  const clear = () => {
    refill(host);
    setAttr(field, "aria-invalid", null);
  };
  const ask = async () => {
    const mine = ++latest, text = field.value;
    if (!text.trim()) {
      clear();
      return checked(false);
    }
    const result = await send.ask("check", { text, purpose: kind });
    if (mine !== latest) return;
    setAttr(field, "aria-invalid", result.fine ? null : "true");
    /** @type {[string, string, string?][]} */
    const issues = result.advice ? [] : result.issues ?? [];
    refill(host,
      result.advice && h("p", { class: "mnb-p mnb-t-bad" }, `Not JSON yet: ${result.advice}`),
      issues.map(([path, message, fix]) => h("p", { class: "mnb-p mnb-t-bad" }, `✖ ${path}: ${message}`, fix && h("span", { class: "mnb-dim" }, ` ${fix}`))),
      result.fine && h("p", { class: "mnb-p mnb-t-good" }, `✓ ${fine}`));
    checked(Boolean(result.fine));
  };
  field.addEventListener("input", () => {
    latest += 1;
    clearTimeout(timer);
    timer = setTimeout(ask, 180);
  });
  return { host, clear };
}
