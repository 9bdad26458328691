/** Readings of a collection's sources: the one that goes on, what the last one left out and why, and reading again. */

import { alarm } from "../answer.js";
import { errorText, get, post } from "../api.js";
import { button, count, el, fill, moment } from "../dom.js";

const OPEN = new Set(["queued", "running"]);
const WAIT_S = 2; // how long a look waits for the end

/** The sources of a collection that can be read again: uploaded files are only there. */
export const usableSources = ({ sources }) => sources.filter((one) => one.source_type !== "upload");

/** Begins to read the sources of a collection again; `by` is a pipeline, or a template with parameters. */
export async function readSources(detail, by) {
  for (const source of usableSources(detail)) await post(`v1/collections/${encodeURIComponent(detail.name)}/ingest`, { ...source, ...by });
}

/** A button that reads the sources of a collection again, by its pipeline; null where all files were uploaded. */
export function readAgain(detail, begun) {
  if (!usableSources(detail).length) return null;
  return button("Read again", async ({ currentTarget: press }) => {
    press.disabled = true;
    try {
      await readSources(detail, { pipeline: detail.pipeline });
      await begun();
    } finally {
      press.disabled = false;
    }
  }, { picture: "again", title: "Reads what has changed at the source, and removes what no longer exists there" });
}

/** The newest reading of a collection; null without one. Calls `ended()` once a reading that goes on has ended. */
export async function readings(collection, ended) {
  const { data } = await get("v1/jobs?limit=200").catch(() => ({ data: [] })); // a key may have no right to them
  const job = data.find((one) => one.collection === collection);
  if (!job) return null;
  const box = el("section", { "aria-live": "polite" });
  draw(box, job);
  if (OPEN.has(job.status)) watch(box, job, ended);
  return box;
}

async function watch(box, job, ended) {
  try {
    while (OPEN.has(job.status)) {
      job = await get(`v1/jobs/${job.id}?wait_s=${WAIT_S}`);
      if (!box.isConnected) return;
      draw(box, job);
    }
    ended();
  } catch (error) {
    fill(box, alarm(errorText(error)));
  }
}

function draw(box, { status, progress, report, failure, next, updated_at: at }) {
  if (OPEN.has(status)) {
    const known = progress.total ? { max: progress.total, value: progress.done } : {};
    return fill(box, el("h2", {}, "Reading"), el("progress.share", { ...known, "aria-label": "Progress" }),
      el("p.quiet", {}, `${count(progress.done, "document")}${progress.total ? ` of ${progress.total}` : ""} ${progress.current}`));
  }
  if (status !== "done") return fill(box, el("h2", {}, `Last reading ${status}`), alarm(failure?.message || next || "It did not end."));
  const skipped = report?.skipped ?? [];
  const unlisted = (report?.skipped_count ?? 0) - skipped.length;
  const facts = [[report?.read, "read"], [report?.unchanged, "unchanged"], [report?.removed, "removed"], [report?.left_out, "left out by the pipeline"], [report?.skipped_count, "not read"]];
  fill(box, el("h2", {}, "Last reading"),
    el("p.facts", {}, el("span", {}, moment(at)), facts.filter(([number]) => number).map(([number, word]) => el("span", {}, `${number} ${word}`))),
    skipped.length > 0 && el("ul.lines", {}, skipped.map((one) => el("li", {}, el("b", {}, one.source), `: ${one.reason}`, report.asks?.[one.code] && el("span.quiet", {}, ` What helps: ${report.asks[one.code]}.`))),
      unlisted > 0 && el("li.quiet", {}, `and ${unlisted} more`)));
}
