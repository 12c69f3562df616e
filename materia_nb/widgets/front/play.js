// Plays a loadout. The page contains every state of its casts, so an answer only looks up the next state. All answers
// are links whose part after "#" lists the answers so far, so the browser can go back and links can be shared.

/** @typedef {[to: number, answer: number, reason: number, turns: number, ...lines: number[]]} Move */
/** @typedef {[text: number, socket: string | null, end: string | null, complete: number, turns: number, moves: Move[]]} State */
/** @typedef {{ name: string, next: string, goal: string, event: string, without: string | null, since: string | null, targets: [string, string][], beliefs: string[], paths: [number[], (Record<string, number> | null)[]][], changes: { label: string, play: Play }[] }} Level */
/** @typedef {{ texts: string[], start: number, states: State[], level?: Level }} Play */
/** @typedef {{ from: State, move: Move, number: number }} Step */

/** Follow the answers of a link, such as "#0.2", as far as they exist. @param {Play} play @param {string} hash @returns {Step[]} */
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

/** Return the events of a move: the verdict, the edges and exits, and then the next socket or the end. @param {Play} play @param {State} from @param {Move} move */
function eventsOf(play, from, move) {
  const [, socket, end] = play.states[move[0]];
  const target = end === null || end === "complete" || end === "held" ? end ?? socket : "failed";
  return [`${from[1]} ${play.texts[move[1]][0]}`, ...move.slice(4).map((index) => play.texts[index]), target];
}

/** Return true or false if the event of a level can or cannot come next after some events, or null if it has happened. @param {Level} level @param {boolean} isOpen @param {(string | null)[]} events */
function afterEvents(level, isOpen, events) {
  for (const event of events) {
    if (isOpen && event === level.event) return null;
    isOpen = (isOpen && event !== level.without) || event === level.since;
  }
  return isOpen;
}

/** Return whether steps reach the event of a level. @param {Play} play @param {Level} level @param {Step[]} steps */
export const isReached = (play, level, steps) => afterEvents(level, level.since === null, steps.flatMap((step) => eventsOf(play, step.from, step.move))) === null;

/** Return a shortest series of steps to the event of a level, or null if no cast can reach the event. @param {Play} play @param {Level} level @returns {Step[] | null} */
export function shortestSteps(play, level) {
  /** @type {{ state: number, isOpen: boolean, steps: Step[] }[]} */
  const queue = [{ state: 0, isOpen: level.since === null, steps: [] }];
  const seen = new Set();
  for (const { state, isOpen, steps } of queue) {
    const from = play.states[state];
    for (const [number, move] of from[5].entries()) {
      const after = afterEvents(level, isOpen, eventsOf(play, from, move));
      const longer = [...steps, { from, move, number }];
      if (after === null) return longer;
      if (!seen.has(`${move[0]} ${after}`)) queue.push({ state: move[0], isOpen: after, steps: longer });
      seen.add(`${move[0]} ${after}`);
    }
  }
  return null;
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

/** Read or store a value in the browser, which may refuse to store anything. @param {string} key @param {unknown} [value] */
function remembered(key, value) {
  try {
    if (value !== undefined) localStorage.setItem(key, JSON.stringify(value));
    return JSON.parse(localStorage.getItem(key) ?? "null");
  } catch {
    return null;
  }
}

/** Return the name of the learner. Links carry the name, because a browser may store it late or separately for each file. */
const learner = () => new URLSearchParams(location.search).get("learner") ?? String(remembered("materia-learner") ?? "");

/** Return the drawn route of a level for the name of the learner. @param {Level} level */
function drawnPath(level) {
  const draw = [...learner()].reduce((sum, letter) => (31 * sum + letter.charCodeAt(0)) % 2 ** 31, 0);
  return level.paths[draw % level.paths.length];
}

/** @param {Play} play */
function start(play) {
  document.head.append(element("style", STYLES));
  const main = /** @type {HTMLElement} */ (document.getElementById("play")), level = play.level;
  const task = element("p", level?.goal ?? "", { role: "status", class: "task" });
  const panel = element("div", "", { "aria-live": "polite" }), controls = element("div", "");
  const next = element("a", "Next level", { href: `${level?.next}.html${location.search}`, class: "next", hidden: "" });
  const overviewLink = element("a", "All levels", { href: `index.html${location.search}` });
  main.append(task, panel, controls, ...(level ? [overviewLink, next] : []));
  const text = (/** @type {number} */ index) => play.texts[index];
  let timer = 0;

  function solve(/** @type {string} */ sentence) {
    task.textContent = `\u2713 ${sentence}`;
    if (!level) return;
    remembered(`materia-level:${level.name}`, true);
    overviewLink.setAttribute("href", `index.html${location.search}#${level.name}`);
    if (level.next) next.removeAttribute("hidden");
  }

  function highlight(/** @type {Step | undefined} */ last, /** @type {State} */ state, variant = play) {
    const lines = last ? last.move.slice(4).map((index) => variant.texts[index]) : [];
    for (const line of document.querySelectorAll("[data-edge]")) line.classList.toggle("taken", lines.includes(line.getAttribute("data-edge") ?? ""));
    for (const card of document.querySelectorAll("[data-socket]")) {
      const here = card.getAttribute("data-socket") === state[1];
      card.classList.toggle("here", here);
      if (here) card.scrollIntoView({ block: "nearest", inline: "center" });
    }
  }

  const button = (/** @type {string} */ words, /** @type {() => void} */ act) => {
    const node = element("button", words, { type: "button", class: "answer" });
    node.addEventListener("click", act);
    return node;
  };

  /** @param {Level} current @param {Step[]} steps @param {State} state */
  function predict(current, steps, state) {
    const [path, wrongTargets] = drawnPath(current), count = steps.length;
    if (steps.some((step, index) => step.number !== path[index])) return location.replace("#");
    if (wrongTargets[count] === null) return location.replace(linkTo(path.slice(0, count + 1)));
    const since = wrongTargets.findLastIndex((wrong, index) => wrong !== null && index < count);
    const reasons = since < 0 ? [play.start, ...steps.map((step) => step.move[2])] : steps.slice(since).map((step) => step.move[2]);
    const parts = [...reasons.map((reason) => element("p", text(reason), { class: "why" })), element("h2", text(state[0]))];
    const feedback = element("p", "", { role: "alert" }), questions = wrongTargets.filter(Boolean).length;
    if (count === path.length) solve(`You have predicted all ${questions} moves.`);
    else parts.push(element("p", `${wrongTargets.slice(0, count + 1).filter(Boolean).length} of ${questions}. The answer: ${text(state[5][path[count]][1])}. Where does the cast go?`));
    panel.replaceChildren(...parts, feedback);
    const target = count < path.length ? eventsOf(play, state, state[5][path[count]]).at(-1) : "";
    const choices = current.targets.map(([id, label]) => button(label, () => {
      const belief = current.beliefs[wrongTargets[count]?.[id] ?? -1];
      if (({ complete: "end", failed: "stop" })[target ?? ""] === id || target === id) location.hash = linkTo(path.slice(0, count + 1));
      else feedback.textContent = belief ? `No. That would be right if ${belief}.` : "No. Check the edges in their order.";
    }));
    controls.replaceChildren(element("nav", "", { "aria-label": "Where does the cast go?" }, ...(target ? choices : [])));
  }

  /** @param {Level} current @param {Play} variant @param {string} label */
  function judge(current, variant, label) {
    clearInterval(timer);
    const steps = shortestSteps(variant, current);
    panel.replaceChildren(element("h2", label), element("p", steps ? "A counterexample is left:" : "No cast can do that."));
    if (!steps) return solve("You have found a change that leaves no counterexample.");
    task.textContent = current.goal;
    const end = variant.states[steps[steps.length - 1].move[0]];
    panel.append(element("ol", "", {}, ...steps.map(({ from, move }) => element("li", `${variant.texts[from[0]]}: ${variant.texts[move[1]]}`)), element("li", variant.texts[end[0]])));
    let stepIndex = 0;
    const walk = () => highlight(steps[stepIndex], variant.states[steps[stepIndex++ % steps.length].move[0]], variant);
    walk();
    timer = setInterval(() => (stepIndex < steps.length ? walk() : clearInterval(timer)), 900);
  }

  function show() {
    const steps = follow(play, location.hash);
    const last = steps.at(-1);
    const state = last ? play.states[last.move[0]] : play.states[0];
    highlight(last, state);
    if (level) task.textContent = level.goal;
    if (level?.paths.length) return predict(level, steps, state);
    if (level?.changes.length) return;
    const numbers = steps.map((step) => step.number);
    const turns = steps.reduce((sum, step) => sum + step.move[3], 0);
    const others = last ? last.from[5].filter((move) => move[1] !== last.move[1]) : [];
    if (level && isReached(play, level, steps)) solve(`Reached with ${steps.length} answers. The fewest are ${shortestSteps(play, level)?.length}.`);
    panel.replaceChildren(
      element("p", text(last ? last.move[2] : play.start), { class: "why" }),
      element("h2", text(state[0])),
      ...(level ? [] : [element("p", oddsText(state, last?.from, turns))]),
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
  }

  addEventListener("hashchange", () => {
    show();
    /** @type {HTMLElement | null} */ (controls.querySelector("a, button"))?.focus();
  });
  addEventListener("keydown", (event) => {
    const answers = /** @type {NodeListOf<HTMLElement>} */ (controls.querySelectorAll(".answer"));
    if (!event.ctrlKey && !event.altKey && !event.metaKey) answers[Number(event.key) - 1]?.click();
  });
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const colour = () => document.body.setAttribute("data-jp-theme-light", String(!dark.matches));
  dark.addEventListener("change", colour);
  colour();
  if (level?.changes.length) {
    const choices = level.changes.map((change, index) => button(change.label, () => {
      document.querySelectorAll("#picture > div").forEach((picture, number) => picture.toggleAttribute("hidden", number !== index + 1));
      judge(level, change.play, change.label);
    }));
    controls.append(element("nav", "", { "aria-label": "What do you change?" }, ...choices));
    judge(level, play, "As it is");
  }
  show();
}

/** Mark the solved levels in the overview, and ask for the name from which routes are drawn. @param {HTMLElement} overview */
function startOverview(overview) {
  document.head.append(element("style", STYLES));
  // The hash names a level just solved: a file may not share what it stores, and a page opened at once may read too early.
  addEventListener("pageshow", () => {
    for (const link of document.querySelectorAll("[data-level]")) {
      const name = link.getAttribute("data-level"), solved = remembered(`materia-level:${name}`) || location.hash === `#${name}`;
      if (solved && !link.textContent?.includes("\u2713")) link.append(" \u2713");
    }
  });
  const field = /** @type {HTMLInputElement} */ (element("input", "", { id: "learner", value: learner() }));
  const passOn = () => document.querySelectorAll("[data-level]").forEach((link) => link.setAttribute("href", `${link.getAttribute("data-level")}.html?learner=${encodeURIComponent(field.value)}`));
  field.addEventListener("change", () => {
    remembered("materia-learner", field.value);
    passOn();
    history.replaceState(null, "", `?learner=${encodeURIComponent(field.value)}${location.hash}`);
  });
  if (field.value) passOn();
  overview.append(element("label", "Your name, from which routes are drawn: ", { for: "learner" }), field);
}

const stored = typeof document === "undefined" ? null : document.getElementById("play-data");
if (stored) start(JSON.parse(stored.textContent ?? ""));
const overview = typeof document === "undefined" ? null : document.getElementById("levels");
if (overview) startOverview(overview);
