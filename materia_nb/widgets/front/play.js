// Plays a loadout. The page contains every state of its casts, so an answer only looks up the next state. All answers
// are links whose part after "#" lists the answers so far, so the browser can go back and links can be shared.

/** @typedef {[to: number, answer: number, reason: number, turns: number, ...lines: number[]]} Move */
/** @typedef {[text: number, socket: string | null, end: string | null, complete: number, turns: number, moves: Move[]]} State */
/** @typedef {{ texts: string[], start: number, states: State[] }} Play */

/** Follow the answers of a link, such as "#0.2", as far as they exist. @param {Play} play @param {string} hash @returns {{ from: State, move: Move, number: number }[]} */
export function follow(play, hash) {
  const steps = [];
  let from = play.states[0];
  for (const word of hash.slice(1).split(".")) {
    const move = /^\d+$/.test(word) ? from[5][Number(word)] : undefined;
    if (!move) break;
    steps.push({ from, move, number: Number(word) });
    from = play.states[move[0]];
  }
  return steps;
}

/** Return a sentence about the odds in a state, compared with the previous state. @param {State} state @param {State | undefined} before @param {number} turns */
export function oddsText(state, before, turns) {
  const chance = (/** @type {State} */ { 3: complete }) => `${(100 * complete).toFixed(1)} %`;
  const remaining = (/** @type {State} */ { 4: mean }) => mean.toFixed(1);
  const chanceBefore = before ? ` (before: ${chance(before)})` : "";
  const remainingBefore = before ? ` (before: ${remaining(before)})` : "";
  return `Chance to complete: ${chance(state)}${chanceBefore}. Turns still to come: ${remaining(state)} on average${remainingBefore}. Turns so far: ${turns}.`;
}

/** @param {string} tag @param {string} text @param {Record<string, string>} [attributes] @param {...Node} children */
function element(tag, text, attributes = {}, ...children) {
  const node = document.createElement(tag);
  node.textContent = text;
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/** @param {number[]} numbers */
const linkTo = (numbers) => `#${numbers.join(".")}`;

/** @param {Play} play */
function start(play) {
  document.head.append(element("style", STYLES));
  const main = /** @type {HTMLElement} */ (document.getElementById("play"));
  const said = element("div", "", { "aria-live": "polite" });
  const controls = element("div", "");
  main.append(said, controls);
  const text = (/** @type {number} */ index) => play.texts[index];

  function show() {
    const steps = follow(play, location.hash);
    const last = steps.at(-1);
    const state = last ? play.states[last.move[0]] : play.states[0];
    const numbers = steps.map((step) => step.number);
    const turns = steps.reduce((sum, step) => sum + step.move[3], 0);
    const others = last ? last.from[5].filter((move) => move[1] !== last.move[1]) : [];
    said.replaceChildren(
      element("p", text(last ? last.move[2] : play.start), { class: "why" }),
      element("h2", text(state[0])),
      element("p", oddsText(state, last?.from, turns)),
    );
    const answers = state[5].map((move, index) => element("a", text(move[1]), { href: linkTo([...numbers, index]), class: "answer" }));
    const back = steps.length ? [element("a", "Back", { href: linkTo(numbers.slice(0, -1)), class: "back" }), element("a", "Start again", { href: "#", class: "back" })] : [];
    const instead = others.map((move) => element("li", `${text(move[1])}: the cast would have gone to ${text(play.states[move[0]][0])}.`));
    const route = steps.map((step, index) => element("li", "", {}, element("a", `${text(step.from[0])}: ${text(step.move[1])}`, { href: linkTo(numbers.slice(0, index)) })));
    controls.replaceChildren(
      element("nav", "", { "aria-label": state[2] ? "The cast has ended" : "What does the socket answer?" }, ...answers, ...back),
      ...(instead.length ? [element("h3", "Other answers"), element("ul", "", {}, ...instead)] : []),
      ...(route.length ? [element("h3", "The route so far"), element("ol", "", {}, ...route)] : []),
    );
    const lines = last ? last.move.slice(4).map(text) : [];
    for (const line of document.querySelectorAll("[data-edge]")) line.classList.toggle("taken", lines.includes(line.getAttribute("data-edge") ?? ""));
    for (const card of document.querySelectorAll("[data-socket]")) {
      const here = card.getAttribute("data-socket") === state[1];
      card.classList.toggle("here", here);
      if (here) card.scrollIntoView({ block: "nearest", inline: "center" });
    }
  }

  addEventListener("hashchange", () => {
    show();
    /** @type {HTMLElement | null} */ (controls.querySelector("a"))?.focus();
  });
  addEventListener("keydown", (event) => {
    const answers = /** @type {NodeListOf<HTMLElement>} */ (controls.querySelectorAll(".answer"));
    if (!event.ctrlKey && !event.altKey && !event.metaKey) answers[Number(event.key) - 1]?.click();
  });
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const colour = () => document.body.setAttribute("data-jp-theme-light", String(!dark.matches));
  dark.addEventListener("change", colour);
  colour();
  show();
}

const stored = typeof document === "undefined" ? null : document.getElementById("play-data");
if (stored) start(JSON.parse(stored.textContent ?? ""));
