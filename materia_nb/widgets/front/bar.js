/** The bar: what is going on, what can be done, where runs stop, what it has cost. */
import { h, button, clear, setText, setAttr, setEnabled, isEnabled, durationWords, countWords } from "./dom.js";
import { openMenu } from "./menu.js";

const BAR_SIGNS = { working: "◌", wants: "●", paused: "‖", breakpoint: "●", aborting: "◌", done: "✓", failed: "✖", aborted: "■", ready: "▸", gone: "∅" };

/**
 * @param {HTMLElement} host
 * @param {(kind: string, values?: object) => void} send
 * @param {{unsent: () => Array<{words: string, message: object}>}} shell
 */
export function barPart(host, send, shell) {
  let data = {};
  const modes = h("div", { class: "mnb-modes", role: "group", "aria-label": "mode" });
  const pill = button("", "", () => {
    send("tab", { tab: "answer" });
    send("now");
    send("select", { element: null });
  }, { class: "mnb-pill" });
  const pillWords = h("span", {});
  const live = h("span", { class: "mnb-sr", role: "status" });
  const clock = h("span", { class: "mnb-clock", "aria-hidden": "true" });
  pill.append(pillWords, clock);
  const go = (kind, values = {}) => (event) => {
    const node = event.currentTarget;
    if (!isEnabled(node)) return;
    const unsent = shell.unsent();
    if (!unsent.length) return send(kind, values);
    openMenu(node, [
      { words: `Not applied yet: ${unsent.map((one) => one.words).join(", ")}` },
      { words: `Apply, then ${node.textContent}`, act: () => send(kind, { ...values, first: unsent.map((one) => one.message) }) },
      { words: `${node.textContent} without it; it stays typed`, act: () => send(kind, values) },
    ]);
  };
  const step = button("Step", "run one socket", go("step"), { class: "mnb-b mnb-main", "data-act": "step" });
  const run = button("Run", "run until the cast ends or must stop", go("run"), { "data-act": "run" });
  const runTo = button("Run to ▾", "run until in front of a socket", () => {
    if (!isEnabled(runTo)) return;
    openMenu(
      runTo,
      (data.sockets || []).map(([id, words]) => ({ words, act: () => send("run_to", { socket: id }) })),
      { label: "run to", sought: (data.sockets || []).length > 8 },
    );
  }, { "aria-haspopup": "menu" });
  const pause = button("Pause", "stop after, or if it can be stopped within, the step that runs", () => isEnabled(pause) && send("pause"));
  const abort = button("Abort…", "end the cast; asks first", () => {
    if (!isEnabled(abort)) return;
    openMenu(abort, [
      { words: "End this cast? Retry goes on with it." },
      { words: "Abort the cast", tone: "bad", act: () => send("abort") },
      { words: "Keep it", act: () => {} },
    ]);
  }, { class: "mnb-b mnb-bad", "aria-haspopup": "menu" });
  const leave = button("Leave it behind", "go on without the function that is waited for; what it answers later is thrown away", () => isEnabled(leave) && send("leave"));
  const again = h("span", { class: "mnb-again" });
  const resend = button("Retry the turn", "ask the turn that was cut short once more, in the same conversation", go("resend"));
  const recast = button("Retry", "run the socket where it stopped once more", go("recast"));
  const revive = button("Retry past the limit", "go on, the limit that stopped it granted once more", go("revive"));
  again.append(recast, resend, revive);
  const asks = h("span", { class: "mnb-asks", role: "group" });
  const asksWords = h("span", { class: "mnb-cut mnb-code" });
  const allow = button("Allow", "run exactly this, once", () => isEnabled(allow) && send("allow", { seen: data.asks.key }), { class: "mnb-b mnb-main" });
  const review = button("Review…", "too long for this bar: shows all of it", () => send("tab", { tab: "answer" }), { class: "mnb-b mnb-main" });
  const deny = button("Deny", "the agent goes on without", () => isEnabled(deny) && send("deny", { seen: data.asks.key, reason: "" }));
  asks.append(asksWords, allow, review, deny);
  const breaks = h("span", { class: "mnb-chips", role: "group", "aria-label": "breakpoints" });
  const counts = h("span", { class: "mnb-counts mnb-long" });
  const meter = h("span", { class: "mnb-meter", role: "img" }, h("span", {}));
  const tokensLong = h("span", { class: "mnb-long" }), tokensShort = h("span", { class: "mnb-short" });
  const tokens = h("span", { class: "mnb-counts" }, tokensLong, tokensShort);
  const more = button("⋯", "more", () => openMenu(more, barMore(data, send, shell), { label: "more" }), { "aria-label": "more", "aria-haspopup": "menu" });
  // What acts stands before what changes its width, so that no button moves away under the mouse.
  host.append(modes, step, run, again, asks, runTo, pause, abort, leave, pill, live, breaks, h("span", { class: "mnb-space" }), counts, meter, tokens, more);

  const tick = () => {
    const since = data.since;
    setText(clock, since ? ` ${durationWords(Date.now() - since)}` : "");
  };
  const timer = setInterval(tick, 1000);

  let madeModes = "", madeBreaks = "", told = "";
  const casting = [pill, counts, tokens];
  return {
    update(now) {
      data = now;
      const wanted = JSON.stringify([now.modes, now.mode]);
      if (wanted !== madeModes) {
        madeModes = wanted;
        clear(modes).append(...(now.modes || []).map((one) =>
          button(one === "cast" ? "Cast" : "Design", one === "cast" ? "go on with the cast" : "change the loadout", () => send("mode", { mode: one }), {
            "aria-pressed": String(one === now.mode),
          })));
        modes.hidden = (now.modes || []).length < 2;
      }
      const cast = now.mode !== "design";
      for (const node of casting) node.hidden = !cast;
      pill.className = `mnb-pill mnb-tone-${now.tone}`;
      setText(pillWords, `${BAR_SIGNS[now.tone] || "·"} ${now.words || ""}`);
      setAttr(pill, "title", `${now.detail || now.words}: shows where the cast is`);
      if (told !== now.words) setText(live, (told = now.words || ""));
      tick();
      const can = now.can || {}, why = now.why || {};
      const stopped = Boolean(now.stopped);
      for (const [node, name] of [[step, "step"], [run, "run"], [runTo, "run"], [pause, "pause"], [abort, "abort"], [leave, "leave"], [recast, "recast"], [resend, "resend"], [revive, "revive"]]) {
        setEnabled(node, Boolean(can[name]), why[name] || "");
      }
      const asked = Boolean(now.asks) && !now.busy;
      for (const node of [step, run]) node.hidden = !cast || stopped || asked;
      step.classList.toggle("mnb-main", Boolean(can.step));
      runTo.hidden = !cast || stopped || asked;
      pause.hidden = !cast || stopped || asked;
      abort.hidden = !cast || stopped;
      leave.hidden = !cast || !can.leave;
      again.hidden = !cast || !stopped;
      resend.hidden = !can.resend && !now.resendable;
      asks.hidden = !cast || !now.asks;
      if (now.asks) {
        setText(asksWords, now.asks.words);
        setAttr(asksWords, "title", now.asks.words);
        allow.hidden = !now.asks.whole;
        review.hidden = now.asks.whole;
        setAttr(asks, "aria-label", `asks for approval: ${now.asks.words}`);
        for (const node of [allow, deny]) setEnabled(node, !now.busy);
      }
      const chips = JSON.stringify(now.breaks || []);
      if (chips !== madeBreaks) {
        madeBreaks = chips;
        clear(breaks).append(...(now.breaks || []).map((one) => h("span", { class: "mnb-chip", title: `runs stop: ${one.words}${one.asks ? ", if its condition holds" : ""}` },
          h("span", { class: "mnb-cut" }, `● ${one.words}`),
          button("×", `no breakpoint: ${one.words}`, () => send("break", { breakpoint: one.breakpoint }), { class: "mnb-x", "aria-label": `take away the breakpoint ${one.words}` }))));
      }
      breaks.hidden = !cast;
      setText(counts, now.counts || "");
      const most = now.most || 0, used = now.tokens === null ? "unknown" : countWords(now.tokens || 0);
      meter.hidden = !most || !cast;
      if (most) {
        meter.firstChild.style.width = `${Math.min(100, (100 * now.tokens) / most)}%`;
        meter.dataset.warn = now.tokens >= most ? "over" : now.warn ? "near" : "";
        setAttr(meter, "aria-label", `${used} of ${countWords(most)} tokens used`);
      }
      const dollars = (amount) => `$${amount.toFixed(amount < 1 ? 4 : 2)}`;
      const price = now.mostCost === null || now.mostCost === undefined ? "" : ` of ${dollars(now.mostCost)}`;
      const cost = now.cost || price ? ` · ${now.cost === null ? "cost unknown" : dollars(now.cost || 0)}${price}` : "";
      const any = now.tokens || most || price, short = now.tokens === null ? "?" : countWords(now.tokens || 0, true);
      const missing = now.unknown ? `, unknown of ${now.unknown} turn${now.unknown > 1 ? "s" : ""}` : "";
      setText(tokensLong, any ? `${now.tokens === null ? "unknown" : short}${most ? ` of ${countWords(most, true)}` : ""} tokens${cost}` : "");
      setText(tokensShort, any ? short + (most ? `/${countWords(most, true)}` : "") + " tok" : "");
      setAttr(tokens, "title", `${now.counts || ""}${any ? ` · ${used}${most ? ` of ${countWords(most)}` : ""} tokens${missing}${cost}` : ""}`);
    },
    destroy: () => clearInterval(timer),
  };
}

/** What the menu at the end of the bar offers. */
function barMore(data, send, shell) {
  const casting = [
    { words: "Undo the last edit", act: () => send("undo"), off: !data.undo, why: data.undo ? "" : "no edit since the last step" },
    ...(data.breaks || []).map((one) => ({ words: `Take the breakpoint away: ${one.words}`, act: () => send("break", { breakpoint: one.breakpoint }) })),
    { words: "Take all breakpoints away", act: () => send("clear_breaks"), off: !(data.breaks || []).length },
    ...(data.allowed || []).map((tool) => ({ words: `Let ${tool} ask again`, act: () => send("disallow", { tool }) })),
    { words: "Budget…", act: () => shell.askLine("budget of this cast: tokens, or a cost as in 2.50 USD; empty for none", String(data.most || ""), (text) => send("budget", { budget: text })) },
  ];
  return [
    ...(data.mode === "design" ? [] : casting),
    { words: shell.folded("inspector") ? "Show the inspector" : "Fold the inspector away", act: () => shell.fold("inspector") },
    { words: shell.folded("dock") ? "Show timeline and items" : "Fold timeline and items away", act: () => shell.fold("dock") },
    { words: "Taller", act: () => send("height", { by: 120 }) },
    { words: "Lower", act: () => send("height", { by: -120 }) },
    { words: "Open beside: right-click beside the cell's output, then “Create New View for Cell Output”" },
  ];
}
