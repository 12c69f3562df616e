/** The canvas's own menu, and the words that are shown where the mouse rests. */
import { h, clear } from "./dom.js";

/** A menu over the picture. @param {HTMLElement} host positioned; the menu stays inside it */
export function canvasMenu(host) {
  let end = null;
  const close = () => end?.();
  const open = (x, y, label, entries) => {
    close();
    const before = document.activeElement;
    const items = entries.map((one) =>
      h("button", { type: "button", role: "menuitem", tabindex: "-1", class: "mnb-c-item", onclick: () => (close(), one.act()) }, one.words),
    );
    const box = h("div", { class: "mnb-c-menu", role: "menu", "aria-label": label }, items);
    host.append(box);
    box.style.left = `${Math.max(2, Math.min(x, host.clientWidth - box.offsetWidth - 4))}px`;
    box.style.top = `${Math.max(2, Math.min(y, host.clientHeight - box.offsetHeight - 4))}px`;
    const outside = (event) => box.contains(event.target) || close();
    end = () => {
      end = null;
      document.removeEventListener("pointerdown", outside, true);
      // Before it goes: the notebook takes the focus when what has it is taken away, and then every key.
      if (box.contains(document.activeElement)) (before?.isConnected && before !== document.body ? before : host).focus?.({ preventScroll: true });
      box.remove();
    };
    document.addEventListener("pointerdown", outside, true);
    box.addEventListener("keydown", (event) => {
      const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (by) items[(items.indexOf(document.activeElement) + by + items.length) % items.length].focus();
      else if (event.key === "Escape" || event.key === "Tab") close();
      else if (event.key !== "Enter" && event.key !== " ") return;
      event.stopPropagation();
      if (event.key !== "Enter" && event.key !== " ") event.preventDefault();
    });
    box.addEventListener("contextmenu", (event) => (event.preventDefault(), event.stopPropagation()));
    items[0]?.focus({ preventScroll: true });
  };
  return { open, close };
}

/** Words beside the mouse; only ever text. @param {HTMLElement} host */
export function canvasHover(host) {
  const box = h("div", { class: "mnb-c-hover", role: "tooltip", hidden: true });
  host.append(box);
  let timer = 0;
  let over = null;
  const hide = () => {
    clearTimeout(timer);
    box.hidden = true;
    over = null;
  };
  return {
    hide,
    /** Show words once the mouse rests on an element; `words` is asked for then. */
    show(x, y, element, words) {
      if (!box.hidden && over === element) return;
      hide();
      if (!words) return;
      over = element;
      timer = setTimeout(() => {
        clear(box).append(words);
        box.hidden = false;
        box.style.left = `${Math.max(2, Math.min(x + 14, host.clientWidth - box.offsetWidth - 4))}px`;
        const below = y + 18 + box.offsetHeight < host.clientHeight;
        box.style.top = `${Math.max(2, below ? y + 18 : y - box.offsetHeight - 10)}px`;
      }, 380);
    },
  };
}
