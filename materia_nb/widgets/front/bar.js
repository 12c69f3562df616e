/** The bar: status, actions, breakpoints and usage. */
import { actButton, h, button, isEnabled, isNew, redraw, setText, setAttr, setEnabled, show, startSettling } from "./dom.js";
import { durationWords, countWords } from "./words.js";
import { openMenu } from "./menu.js";

/** @type {Record<string, string>} */
const SIGNS = { working: "◌", wants: "●", paused: "‖", breakpoint: "●", aborting: "◌", done: "✓", failed: "✖", aborted: "■", ready: "▸", gone: "∅" };

/** Describe tokens and cost: a long and a short label, and the full text for the tooltip. @param {Usage} usage */
export function usageWords({ tokens, cost, most: tokenLimit, mostCost: costLimit, others, unknown, counts = "" }) {
  const dollars = (/** @type {number} */ amount) => `$${amount.toFixed(amount < 1 ? 4 : 2)}`;
  const price = costLimit === null || costLimit === undefined ? "" : ` of ${dollars(costLimit)}`;
  const paid = cost || price ? ` · ${cost === null ? "cost unknown" : dollars(cost || 0)}${price}` : "", rest = others ? ` · ${others}` : "";
  const used = tokens === null ? "unknown" : countWords(tokens || 0), short = countWords(tokens || 0, true);
  if (!tokens && !tokenLimit && !price && !rest) return { used, long: "", short: "", full: counts };
  const missing = unknown ? `, unknown of ${unknown} turn${unknown > 1 ? "s" : ""}` : "";
  return {
    used,
    long: `${tokens === null ? used : short}${tokenLimit ? ` of ${countWords(tokenLimit, true)}` : ""} tokens${paid}${rest}`,
    short: `${tokens === null ? "?" : short}${tokenLimit ? `/${countWords(tokenLimit, true)}` : ""} tok`,
    full: `${counts} · ${used}${tokenLimit ? ` of ${countWords(tokenLimit)}` : ""} tokens${missing}${paid}${rest}`,
  };
}

/** Ask for the condition of a breakpoint: the n-th hit, or an expression. @param {PanelSender} send @param {Shell} shell @param {any} breakpoint */
export function askWhere(send, shell, breakpoint) {
  const { nth, where } = breakpoint;
  const shape = 'a number for the n-th time, or where this holds: state.score < 3, item.title == "Draft", "TODO" in output';
  shell.askLine("stop only when", String(nth ?? where ?? ""), (text) => send("break_where", { breakpoint, text }), shape);
}

/** Map F8, F10 and Shift+F10 to the name of their action. @param {{key: string, shiftKey: boolean, ctrlKey: boolean, altKey: boolean, metaKey: boolean}} event @returns {"run"|"step"|"run_item"|null} */
export function actOfKey({ key, shiftKey, ctrlKey, altKey, metaKey }) {
  if (ctrlKey || altKey || metaKey) return null;
  if (key === "F10") return shiftKey ? "run_item" : "step";
  return key === "F8" && !shiftKey ? "run" : null;
}

/**
 * Return a function that continues the cast; if typed input has not been applied, it asks first.
 * @param {PanelSender} send @param {Shell} shell
 * @returns {(at: HTMLElement, label: string, kind: "step"|"run"|"run_item"|"retry"|"retry_turn"|"retry_limit"|"ask_again"|"apply_changes") => void}
 */
export function continues(send, shell) {
  return (at, label, kind) => {
    const unsent = shell.unsent();
    if (!unsent.length) return send(kind);
    openMenu(at, [
      { words: `Not applied yet: ${unsent.map((draft) => draft.words).join(", ")}` },
      { words: `Apply, then ${label}`, acts: true, act: () => send(kind, { first: unsent.map((draft) => draft.message) }) },
      { words: `${label} without it (your text stays)`, acts: true, act: () => send(kind) },
    ]);
  };
}

const LONG_RUN_MS = 60_000;

/**
 * Return the text of a desktop notification, or null: a long run has stopped while the page is hidden.
 * @param {Bar} before @param {Bar} now @param {number} time @param {boolean} hidden
 */
export function notificationText(before, now, time, hidden) {
  const stopped = before.tone === "working" && !now.busy && now.tone !== "paused";
  return hidden && stopped && time - (before.since ?? time) >= LONG_RUN_MS ? now.words || null : null;
}

/** Ask the browser for permission to show notifications. @returns {MenuEntry[]} */
function notificationEntry() {
  const permission = globalThis.Notification?.permission;
  const why = permission === "granted" ? "notifications are on" : permission === "denied" ? "the browser blocks notifications of this page" : "";
  return permission ? [{ words: "Notify me when a long run stops", act: () => void Notification.requestPermission(), off: Boolean(why), why }] : [];
}

/** @param {HTMLElement} host @param {PanelSender} send @param {Shell} shell @returns {Part & {press(act: "run"|"step"|"run_item"): void}} */
export function barPart(host, send, shell) {
  /** @type {Bar} */
  let data = { tone: "", tokens: 0 };
  const main = { class: "mnb-b mnb-main" };
  const modes = h("div", { class: "mnb-modes", role: "group", "aria-label": "mode" });
  const pillWords = h("span", {}), live = h("span", { class: "mnb-sr", role: "status" }), clock = h("span", { class: "mnb-clock", "aria-hidden": "true" });
  const pill = button("", "", () => {
    send("tab", { tab: "answer" });
    send("now");
    send("select", { element: null });
  }, { class: "mnb-pill" });
  pill.append(pillWords, clock);
  const continueCast = continues(send, shell);
  /** @param {string} label @param {string} title @param {"step"|"run"} kind @param {Attributes} [attrs] */
  const going = (label, title, kind, attrs) => {
    const node = actButton(label, title, () => continueCast(node, label, kind), attrs, true);
    return node;
  };
  const step = going("Step", "run one socket (F10)", "step", { ...main, "data-act": "step" });
  const run = going("Run", "run until the cast ends or must stop (F8)", "run", { "data-act": "run" });
  const runItem = () => continueCast(runTo, "To the end of this item", "run_item");
  const runTo = button("Run to ▾", "run to just before a socket", () => {
    const sockets = data.sockets ?? [];
    openMenu(runTo, [{ words: "the end of this item (Shift+F10)", acts: true, act: runItem }, ...sockets.map(([socket, name]) => ({ words: name, acts: true, act: () => send("run_to", { socket }) }))], { label: "run to", searchable: sockets.length > 8 });
  }, { "aria-haspopup": "menu" });
  /** @param {Repetition} repetition */
  const repeat = ({ words, message: { kind, ...fields } }) => (["back", "fork", "again"].includes(kind) ? send(kind, fields) : continueCast(likeliest, words, kind));
  const likeliest = actButton("", "", () => data.again?.[0] && repeat(data.again[0]));
  const allAgain = button("Again ▾", "all actions that repeat a part of the cast", () => openMenu(allAgain, (data.again ?? []).map((entry) => ({ words: entry.words, why: entry.title, acts: true, act: () => repeat(entry) })), { label: "again" }), { "aria-haspopup": "menu" });
  const repeatGroup = h("span", { class: "mnb-again", role: "group", "aria-label": "again" }, likeliest, allAgain);
  const drawRepetitions = (/** @type {boolean} */ cast) => {
    const first = data.again?.[0], isNext = Boolean(data.stopped) && !data.busy;
    show(repeatGroup, cast && Boolean(first), pill);
    if (!first) return;
    if (isNew(likeliest, first)) startSettling(likeliest);
    setText(likeliest, first.words);
    likeliest.dataset.title = first.title;
    likeliest.classList.toggle("mnb-main", isNext && first.message.kind !== "fork");
    for (const node of [likeliest, allAgain]) setEnabled(node, !data.busy, "a step is running");
  };
  const pause = button("Pause", "stop after the current step, or within it if possible", () => send("pause"));
  const abort = button("Abort…", "abort the cast after a confirmation", () => openMenu(abort, [
    { words: "Abort this cast? You can continue it later with Retry." },
    { words: "Abort the cast", tone: "bad", acts: true, act: () => send("abort") },
    { words: "Keep it", act: () => {} },
  ]), { class: "mnb-b mnb-bad", "aria-haspopup": "menu" });
  const leave = actButton("Continue without it", "continue without the running function; a late answer is discarded", () => send("leave"));
  const asksWords = h("span", { class: "mnb-cut mnb-code" });
  const allow = actButton("Allow", "run exactly this, once", () => send("allow"));
  const review = button("Review…", "the command is too long for this bar; shows the whole command", () => send("tab", { tab: "answer" }));
  const deny = actButton("Deny", "the agent continues without this call", () => send("deny", { reason: "" }));
  const asks = h("span", { class: "mnb-asks", role: "group" }, asksWords, allow, review, deny);
  const breaks = h("span", { class: "mnb-chips", role: "group", "aria-label": "breakpoints" });
  const counts = h("span", { class: "mnb-counts mnb-long" }), filled = h("span", {}), meter = h("span", { class: "mnb-meter", role: "img" }, filled);
  const tokensLong = h("span", { class: "mnb-long" }), tokensShort = h("span", { class: "mnb-short" });
  const tokens = h("span", { class: "mnb-counts" }, tokensLong, tokensShort);
  const more = button("⋯", "more", () => openMenu(more, moreEntries(data, send, shell), { label: "more" }), { "aria-label": "more", "aria-haspopup": "menu" });
  // Buttons stand before anything that changes its width, so that no button moves away under the mouse.
  host.append(modes, step, run, asks, runTo, repeatGroup, pause, abort, leave, pill, live, breaks, h("span", { class: "mnb-space" }), counts, meter, tokens, more);

  const tick = () => setText(clock, data.since ? ` ${durationWords(Date.now() - data.since)}` : "");
  const timer = setInterval(tick, 1000);
  const mode = (/** @type {"cast"|"design"} */ name) => button(name === "cast" ? "Cast" : "Design", name === "cast" ? "continue the cast" : "change the loadout", () => send("mode", { mode: name }), { "aria-pressed": String(name === data.mode) });
  const openBreakpointMenu = (/** @type {Break} */ stop) => (/** @type {MouseEvent} */ event) => {
    event.preventDefault();
    event.stopPropagation();
    openMenu({ x: event.clientX, y: event.clientY, within: host }, [{ words: "Only when…", act: () => askWhere(send, shell, stop.breakpoint) }, { words: "Remove it", act: () => send("break", { breakpoint: stop.breakpoint }) }], { label: "breakpoint" });
  };
  const chip = (/** @type {Break} */ stop) => h("span", { class: "mnb-chip", title: `runs stop: ${stop.words}; right-click to add a condition`, oncontextmenu: openBreakpointMenu(stop) },
    h("span", { class: "mnb-cut" }, `● ${stop.words}`),
    button("×", `remove the breakpoint: ${stop.words}`, () => send("break", { breakpoint: stop.breakpoint }), { class: "mnb-x", "aria-label": `remove the breakpoint ${stop.words}` }));
  const drawUsage = (/** @type {boolean} */ cast) => {
    const limit = data.most || 0, usage = usageWords(data), used = data.tokens ?? 0;
    setText(counts, data.counts || "");
    meter.hidden = !limit || !cast;
    if (limit) {
      filled.style.width = `${Math.min(100, (100 * used) / limit)}%`;
      meter.dataset.warn = used >= limit ? "over" : data.warn ? "near" : "";
      setAttr(meter, "aria-label", `${usage.used} of ${countWords(limit)} tokens used`);
    }
    setText(tokensLong, usage.long);
    setText(tokensShort, usage.short);
    setAttr(tokens, "title", usage.full);
  };
  return {
    /** @param {Bar} now */
    update(now) {
      const news = notificationText(data, now, Date.now(), document.hidden);
      if (news && globalThis.Notification?.permission === "granted") new Notification("Materia", { body: news, tag: "materia-nb" });
      data = now;
      const { can = {}, why, asks: approval } = now, cast = now.mode !== "design", stopped = Boolean(now.stopped), waits = Boolean(approval) && !now.busy;
      if (isNew(modes, [now.modes, now.mode])) redraw(modes, () => now.modes?.map(mode));
      modes.hidden = (now.modes ?? []).length < 2;
      pill.className = `mnb-pill mnb-tone-${now.tone}`;
      setText(pillWords, `${SIGNS[now.tone] ?? "·"} ${now.words || ""}`);
      setAttr(pill, "title", `${now.detail || now.words}: shows the current position of the cast`);
      setText(live, now.words || "");
      tick();
      for (const node of [step, run, runTo]) setEnabled(node, Boolean(can.run), why);
      step.classList.toggle("mnb-main", Boolean(can.run));
      for (const node of [pill, counts, tokens, breaks, more]) node.hidden = !cast;
      drawRepetitions(cast);
      const next = stopped && now.again?.length ? likeliest : stopped || waits ? pill : run;
      for (const node of [step, run, runTo]) show(node, cast && !stopped && !waits, next);
      for (const [node, name] of /** @type {[HTMLElement, string][]} */ ([[pause, "pause"], [abort, "abort"], [leave, "leave"]])) show(node, cast && Boolean(can[name]), next);
      show(asks, cast && Boolean(approval), next);
      if (approval) {
        setText(asksWords, approval.words);
        setAttr(asksWords, "title", approval.words);
        setAttr(asks, "aria-label", `asks for approval: ${approval.words}`);
        allow.hidden = !approval.whole;
        review.hidden = approval.whole;
        for (const node of [allow, deny]) setEnabled(node, !now.busy);
      }
      if (isNew(breaks, now.breaks)) redraw(breaks, () => now.breaks?.map(chip));
      drawUsage(cast);
    },
    press(act) {
      if (data.mode === "design" || run.hidden) return;
      if (act !== "run_item") ({ step, run })[act].click();
      else if (isEnabled(run)) runItem();
    },
    destroy: () => clearInterval(timer),
  };
}

/** The entries of the menu at the end of the bar. @param {Bar} data @param {PanelSender} send @param {Shell} shell @returns {MenuEntry[]} */
export function moreEntries({ mode, undo, breaks = [], allowed = [], most: limit }, send, shell) {
  const casting = [
    { words: "Undo the last edit", act: () => send("undo"), off: !undo, why: undo ? "" : "no edit since the last step" },
    ...breaks.map((stop) => ({ words: `Only when…: ${stop.words}`, act: () => askWhere(send, shell, stop.breakpoint) })),
    ...breaks.map((stop) => ({ words: `Remove the breakpoint: ${stop.words}`, act: () => send("break", { breakpoint: stop.breakpoint }) })),
    { words: "Remove all breakpoints", act: () => send("clear_breaks"), off: !breaks.length },
    ...allowed.map((tool) => ({ words: `Ask for approval of ${tool} again`, act: () => send("disallow", { tool }) })),
    { words: "Budget…", act: () => shell.askLine("budget of this cast: 20000 tokens, 2.50 USD, 60 seconds, 10 turns; empty for none", String(limit || ""), (budget) => send("budget", { budget })) },
  ];
  const fold = (/** @type {string} */ name, /** @type {string} */ label) => ({ words: shell.folded(name) ? `Show ${label}` : `Hide ${label}`, act: () => shell.fold(name) });
  return [
    ...(mode === "design" ? [] : [...casting, ...notificationEntry()]),
    fold("inspector", "the inspector"),
    fold("dock", "timeline and items"),
    { words: "Taller", act: () => send("height", { by: 120 }) },
    { words: "Shorter", act: () => send("height", { by: -120 }) },
    { words: "Open in a new tab: right-click next to the cell's output and choose “Create New View for Cell Output”" },
  ];
}
