/** When the steps of a run and the calls of its models were at work: a bar each, from the run's beginning. */

import { count, el, money, seconds, short, words } from "./dom.js";

const LEAST = 0.01; // seconds; less is not worth a line
const STOPPED = "ERR_CANCELLED"; // by a person: no failure

/** The seconds from a run's beginning to the end of its last step. */
export function lasted({ created_at: created, response: { steps } }) {
  const ends = steps.map((step) => (new Date(step.started_at) - new Date(created)) / 1000 + (step.duration ?? 0));
  return Math.max(0, ...ends);
}

/** The time line; null for a run without times. `chosen(id)` is called for a pressed step. */
export function timeline(run, chosen) {
  const { created_at: created, model_calls: calls = [], response: { steps } } = run;
  const begin = new Date(created).getTime();
  const rows = steps
    .filter((step) => step.started_at && step.duration !== null && ["step", "completion", "tool", "subagent", "plan"].includes(step.type))
    .filter((step, at, all) => step.type !== "tool" || !all.some((one) => one.type === "step" && one.step_id === step.step_id && one.title === step.title))
    .map((step) => ({
      name: words(step.title), kind: step.type, step: step.step_id, from: (new Date(step.started_at).getTime() - begin) / 1000,
      length: step.duration ?? 0, note: spent(calls.filter((call) => step.step_id && call.step_id === step.step_id)),
    }));
  for (const call of calls)
    rows.push({
      name: short(call.model), kind: "model", step: call.step_id, from: (new Date(call.ended_at).getTime() - begin) / 1000 - call.duration,
      length: call.duration, note: [words(call.purpose), spent([call]), call.error_code === STOPPED ? "stopped" : call.error_code].filter(Boolean).join(", "),
      failed: Boolean(call.error_code) && call.error_code !== STOPPED,
    });
  if (!rows.length) return null;
  rows.push(...beforehand(run, Math.min(...rows.map((row) => row.from))));
  rows.sort((one, other) => one.from - other.from);
  const whole = Math.max(0.001, ...rows.map((row) => row.from + row.length));
  return el("ol.timeline", {}, rows.map((row) => {
    const bar = el(`span.bar-of.of-${row.kind}${row.failed ? ".of-failed" : ""}`);
    bar.style.left = `${(100 * Math.max(0, row.from)) / whole}%`;
    bar.style.width = `max(3px, ${(100 * row.length) / whole}%)`;
    const name = row.step ? el("button.linkish.cut", { type: "button", onclick: () => chosen(row.step) }, row.name) : el("span.cut", {}, row.name);
    return el("li", {}, name, el("span.track", { "aria-hidden": "true" }, bar), el("span.time", {}, seconds(row.length)), el("span.quiet.cut", {}, row.note));
  }));
}

/** The bars of what comes before the first work: the queue, then what is done with the request. `first` is in seconds. */
function beforehand({ created_at: created, claimed_at: claimed, plan, response: { steps } }, first) {
  const waited = claimed ? Math.min(first, (new Date(claimed) - new Date(created)) / 1000) : 0;
  const begun = waited >= LEAST ? waited : 0;
  const done = steps.filter((step) => (new Date(step.started_at) - new Date(created)) / 1000 < first).map((step) => words(step.title));
  return [
    { name: "waiting to start", kind: "before", from: 0, length: begun, note: "in the queue" },
    { name: plan ? "before the plan" : "before the first step", kind: "before", from: begun, length: first - begun, note: done.join(", ") },
  ].filter((row) => row.length >= LEAST);
}

/** Tokens and cost of calls, in words. */
function spent(calls) {
  const tokens = calls.reduce((sum, call) => sum + call.prompt_tokens + call.completion_tokens, 0);
  const usd = calls.reduce((sum, call) => sum + (call.cost_usd ?? 0), 0);
  return [tokens > 0 && count(tokens, "token"), usd > 0 && money(usd)].filter(Boolean).join(", ");
}
