/** The `steps` trace of a run as a collapsible list: each attempt with its arguments, calls, output and verdict. */

import { count, el, icon, seconds, short, words } from "./dom.js";

const PICTURES = {
  done: "done", failed: "failed", refused: "blocked", retried: "again", replanned: "again", discarded: "close",
  skipped: "close", unknown: "warning", running: "waiting",
};
const PARTS = new Set(["tool", "supervision", "tailor", "subagent"]);
const ASIDES = new Set(["route", "memory", "gate", "notice", "guard"]);
const SAID = { args: "with", output: "gave", error: "error", reason: "why", summary: "found", feedback: "told", task: "task" };

/** The trace as a list. Lines of an attempt are nested in it; `open` keeps the lines that the person has opened. */
export function trace(steps, open = new Set()) {
  const attempts = new Map();
  const lines = [];
  for (const step of steps) {
    const attempt = step.step_id && `${step.step_id}:${step.attempt}`;
    if (PARTS.has(step.type) && attempts.has(attempt)) attempts.get(attempt).parts.push(step);
    else {
      const line = { step, parts: [], id: `${attempt ?? step.type}:${lines.length}` };
      lines.push(line);
      if (attempt && !PARTS.has(step.type)) attempts.set(attempt, line);
    }
  }
  return el("ol.trace", {}, lines.map((line) => el("li", {}, row(line, open))));
}

/** The icon of a status. */
export const sign = (status) => el(`span.sign.${status}`, {}, icon(PICTURES[status] ?? "waiting", words(status)));

/** Returns a run's outcome as one line. */
export function headline(steps, metadata) {
  if (metadata.status === "awaiting_approval") return "Waiting for you";
  const done = steps.filter((step) => ["step", "completion"].includes(step.type) && step.status !== "skipped").length;
  const retries = steps.filter((step) => step.status === "retried").length;
  const parts = [count(done, "step")];
  const sources = metadata.sources?.length ?? 0;
  if (sources) parts.push(count(sources, "source"));
  if (retries) parts.push(count(retries, "repeat"));
  if (metadata.usage?.total_tokens) parts.push(count(metadata.usage.total_tokens, "token"));
  const model = metadata.runtime?.answer?.model;
  if (model) parts.push(short(model));
  return parts.join(", ");
}

function row({ step, parts, id }, open) {
  const verdict = parts.filter((part) => part.type === "supervision").at(-1);
  const again = step.attempt > 1 ? el("span.tag", {}, `attempt ${step.attempt}`) : null;
  const isAside = ASIDES.has(step.type);
  const head = [
    sign(step.status),
    el(isAside ? "span.name.aside" : "span.name", {}, words(step.title)),
    again,
    el("span.quiet", {}, step.detail?.intent ?? (isAside ? step.detail?.reason : "") ?? ""),
    verdict && el(`span.verdict.${verdict.detail.outcome.toLowerCase()}`, {}, verdict.detail.outcome.toLowerCase()),
    el("span.time", {}, seconds(step.duration)),
  ];
  const saysAll = isAside && step.status === "done" && isEmpty(step.detail?.findings);
  const own = saysAll ? [] : facts(step);
  const inside = [...own, ...parts.map((part) => within(part, step))].filter(Boolean);
  if (!inside.length) return el("div.line", {}, head);
  const fold = el("details", { open: open.has(id) }, el("summary.line", {}, head), el("div.inside", {}, inside));
  Object.assign(fold.dataset, { id, step: step.step_id ?? "" });
  fold.addEventListener("toggle", () => (fold.open ? open.add(id) : open.delete(id)));
  return fold;
}

/** A tool call, verdict or check within an attempt. A step that is only one call does not show it twice. */
function within(part, step) {
  if (part.type === "supervision") {
    const by = part.detail.by === "model" ? "the judge" : "the checks";
    return el("p.judged", {}, el("b", {}, part.detail.outcome), ` by ${by}: ${part.detail.reason}`,
      part.detail.suggested_fix && ` Suggested: ${part.detail.suggested_fix}`);
  }
  if (part.type === "tool" && part.title === step.title && part.status === "done") return null;
  return el(part.span ? "div.part.span" : "div.part", {},
    el("div.line", {}, sign(part.status), el("span.name", {}, words(part.title)),
      part.type === "subagent" && el("span.tag", {}, "sub-agent"), el("span.time", {}, seconds(part.duration))),
    facts(part));
}

/** Returns the details of a line as pairs of label and value. */
function facts({ detail, type }) {
  if (!detail || type === "supervision") return [];
  const pairs = Object.entries(SAID).filter(([name]) => !isEmpty(detail[name]));
  if (type === "guard" && !isEmpty(detail.findings)) pairs.push(["findings", "found"]);
  if (type === "plan" && detail.steps) pairs.push(["steps", "steps"]);
  if (type === "tailor" && detail.problems) pairs.push(["problems", "left out"]);
  return pairs.map(([name, word]) => el("div.fact", {}, el("span.word", {}, word), value(detail[name])));
}

/** Formats a JSON value; short objects as their pairs. */
export function value(data) {
  if (typeof data === "string") return el("pre", { tabIndex: 0 }, data);
  if (typeof data !== "object") return el("pre", { tabIndex: 0 }, String(data));
  if (Array.isArray(data) && data.every((one) => typeof one === "string")) return el("pre", {}, data.join("\n"));
  const pairs = Object.entries(data);
  if (!Array.isArray(data) && pairs.every(([, one]) => typeof one !== "object"))
    return el("pre", { tabIndex: 0 }, pairs.map(([name, one]) => `${name}: ${one}`).join("\n"));
  return el("pre", { tabIndex: 0 }, JSON.stringify(data, null, 2));
}

const isEmpty = (data) =>
  data === undefined || data === null || data === "" || (typeof data === "object" && !Object.keys(data).length);
