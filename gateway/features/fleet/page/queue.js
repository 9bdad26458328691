/** The queue: lanes with their jobs, the workers that take them, and dead letters to retry or discard. */

import { get, post, request } from "../api.js";
import { el, fill, groupBy, moment, pause, seconds, table } from "../dom.js";
import { actions, part } from "../forms.js";
import { addStyle } from "../parts.js";

await addStyle(import.meta.url, "queue.css");

export const about = "Lanes, workers and dead letters.";
export const whole = true; // shown without a choice

const PAUSE_MS = 5000;

/** What is said where no queue is used: that is no fault. */
const notUsed = () => [el("header", {}, el("h1", {}, "Queue"), el("p.lead", {}, "This gateway does all work itself; it needs no queue.")),
  el("p.quiet", {}, "To share work between processes, the operator sets ", el("code", {}, "AGENT_DISPATCH=queue"), " and ", el("code", {}, "AGENT_DATABASE_URL"), ".")];

/** Lanes and workers, read again every few seconds; and dead letters, which a person decides about. */
export async function open() {
  const report = await get("v1/queue").catch((error) => {
    if (error.status !== 409) throw error;
    return null;
  });
  if (!report) return notUsed();
  const figures = el("div");
  const letters = el("div");
  const page = el("div.queue", {}, figures, letters);
  let shown = "";
  const draw = ({ lanes, workers, dead_letters: dead, lease_seconds: lease }) => {
    fill(figures, part("Lanes", drawLanes(lanes)), part("Workers", drawWorkers(workers, lease)));
    const ids = String(dead.map((one) => `${one.id} ${one.run_status}`));
    if (ids === shown && letters.firstChild) return; // what a button has said stays
    shown = ids;
    fill(letters, part("Dead letters", dead.length ? el("ul.lines", {}, dead.map((one) => letter(one, refresh)))
      : el("p.quiet", {}, "None. Jobs that were given up wait here for a person.")));
  };
  const refresh = async () => draw(await get("v1/queue"));
  const follow = async () => {
    for (;;) {
      await pause(PAUSE_MS);
      if (!page.isConnected) return;
      if (!document.hidden && page.checkVisibility()) await refresh().catch(() => {}); // the last figures stay
    }
  };
  draw(report);
  follow();
  return [el("header", {}, el("h1", {}, "Queue"), el("p.quiet", {}, "Work that is shared between processes.")), page];
}

function drawLanes(lanes) {
  if (!lanes.length) return el("p.quiet", {}, "No job waits or runs, and no process takes any.");
  const named = (lane) => lanes.filter((one) => one.lane === lane).length > 1; // several kinds of processes share the lane
  return [table("Lanes", ["Lane", "Waiting", "Running", "Failed", "Oldest"], lanes.map((one) => [
    [el("b", {}, one.lane), named(one.lane) && el("span.quiet", {}, one.queue)],
    one.waiting.toLocaleString(), one.running.toLocaleString(), one.failed.toLocaleString(),
    one.waiting ? seconds(one.oldest_seconds) : "–"])),
  lanes.filter((one) => !one.is_served).map((one) => el("p.problem", {}, `No process takes the waiting jobs of ${one.queue}: `,
    "none has the rooms, files, MCP servers and skills of the gateway that accepted them. Start `stepgate worker` with the same settings."))];
}

/** One row a process, with the lanes that it takes. */
function drawWorkers(workers, lease) {
  if (!workers.length) return el("p.problem", {}, "No process takes jobs: start `stepgate worker`.");
  const processes = groupBy(workers, (one) => one.name);
  return table("Workers", ["Process", "Slots in use", "Heartbeat"], [...processes].map(([name, taken]) => {
    const silent = Math.max(...taken.map((one) => one.silent_seconds));
    const lanes = taken.map((one) => el("span", {}, `${one.lane} ${one.running} of ${one.slots}`));
    const heartbeat = `${seconds(silent)} ago`;
    return [[el("b", {}, name), el("span.quiet", {}, `since ${moment(taken[0].started_at)}`)], lanes,
      silent > lease ? el("span.problem", {}, `${heartbeat}: its jobs go to others`) : heartbeat];
  }));
}

function letter(one, refresh) {
  const path = `v1/queue/${one.id}`;
  const decide = (act) => async () => {
    await act();
    await refresh();
  };
  return el("li", {},
    el("p", {}, el("b", {}, one.reason)),
    el("p.facts", {}, el("span", {}, `job ${one.id}, ${one.kind}, lane ${one.lane}`), el("span", {}, moment(one.at)),
      one.run_id && el("span", {}, "run ", el("a", { href: `#/runs/${one.run_id}` }, one.run_id), ` of ${one.owner}: ${one.run_status}`),
      !one.run_id && el("span", {}, JSON.stringify(one.arguments))),
    actions(one.can_retry && ["Retry", decide(() => post(`${path}/retry`))],
      ["Discard", decide(() => request(path, { method: "DELETE" })), "", `Discard job ${one.id}? It will not be run again.`]));
}
