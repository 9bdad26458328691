/** A plan as a graph: a column for parallel steps, a curve for each dependency. */

import { canvas, curve, el, seconds, words } from "./dom.js";
import { sign } from "./trace.js";

const GAP = 40; // pixels between two columns, as in views.css

/** The graph of steps. `states` holds each step's status by id; calls `chosen(id)` for a pressed step. */
export function graph(steps, states, chosen) {
  const known = new Map(steps.map((step) => [step.id, step]));
  const nodes = new Map();
  const columns = [];
  const levels = levelsOf(known);
  for (const step of steps) {
    const { status = "pending", time, attempt = 1 } = states.get(step.id) ?? {};
    const title = named(step);
    const after = step.depends_on.length ? `after ${step.depends_on.map((id) => (known.has(id) ? named(known.get(id)) : id)).join(", ")}` : "";
    const state = status === "pending" ? el("span.sign.pending") : sign(status);
    const node = el(`button.step.${status}`, { type: "button", onclick: () => chosen(step.id) },
      el("span.line", {}, state, el("b", {}, title), el("span.time", {}, seconds(time))),
      el("span.quiet", {}, step.intent || step.id),
      el("span.row", {},
        attempt > 1 && el("span.tag", {}, `attempt ${attempt}`),
        step.effect === "effect" && el("span.tag.notable", {}, "side effect"),
        el("span.waits", {}, after)));
    nodes.set(step.id, node);
    (columns[levels.get(step.id)] ??= el("div.level")).append(node);
  }
  const lines = canvas("edges");
  const box = el("div.graph", { role: "group", "aria-label": "Plan" }, lines, columns);
  const draw = () => {
    const at = box.getBoundingClientRect();
    lines.replaceChildren();
    for (const step of steps) {
      const to = nodes.get(step.id).getBoundingClientRect();
      for (const from of direct(step, known).map((id) => nodes.get(id).getBoundingClientRect()))
        if (from.right < to.left)
          lines.append(curve(from.right - at.left + box.scrollLeft, from.top + from.height / 2 - at.top,
            to.left - at.left + box.scrollLeft, to.top + to.height / 2 - at.top, GAP));
    }
    lines.style.width = `${box.scrollWidth}px`;
  };
  new ResizeObserver(draw).observe(box);
  return box;
}

const named = (step) => (step.action === "completion" ? "answer" : words(step.tool));

/** Returns the length of the longest chain of dependencies before each step. */
function levelsOf(known) {
  const levels = new Map();
  const level = (id) => {
    if (levels.has(id)) return levels.get(id);
    levels.set(id, 0); // a plan has no circles; one that had would end here
    const before = (known.get(id)?.depends_on ?? []).filter((one) => known.has(one));
    levels.set(id, Math.max(-1, ...before.map(level)) + 1);
    return levels.get(id);
  };
  for (const id of known.keys()) level(id);
  return levels;
}

/** Returns a step's direct dependencies, without transitive ones. */
function direct({ depends_on: before }, known) {
  const there = before.filter((id) => known.has(id));
  return there.filter((id) => !there.some((other) => other !== id && reaches(other, id, known)));
}

function reaches(from, to, known, seen = new Set()) {
  if (seen.has(from)) return false;
  seen.add(from);
  return known.get(from).depends_on.some((id) => id === to || (known.has(id) && reaches(id, to, known, seen)));
}
