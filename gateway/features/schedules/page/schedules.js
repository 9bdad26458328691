/** Schedules: what runs when, what was done at the last ticks; run now, pause, remove, and a form for a new one. */

import { get, post, request } from "../api.js";
import { el } from "../dom.js";
import { actions, area, choice, field, lines, part } from "../forms.js";

export const about = "Requests that run at regular times. Choose one, or make a new one.";
export const add = "New schedule";

/** Returns a time in the schedule's time zone, with the zone's offset. */
const format = (at, zone) => new Date(at).toLocaleString([], {
  timeZone: zone, timeZoneName: "shortOffset", year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });
const MISFIRES = [["run_once", "run once, for the last one"], ["skip", "do not run"]];
const OVERLAPS = [["skip", "skip that time"], ["allow", "run at the same time"]];

/** Returns the items of the list. */
export async function list() {
  const { data } = await get("v1/schedules");
  return data.map(({ name, enabled, stopped, timezone, next_ticks: [next] }) => ({
    id: name, title: name, about: next ? `next ${format(next, timezone)}` : "", word: stopped ? "stopped" : enabled ? "" : "paused", state: stopped ? "notable" : "" }));
}

/** A schedule with its next times and its last runs. */
export async function open(name, tasks) {
  const path = `v1/schedules/${encodeURIComponent(name)}`;
  const [schedule, { data: ticks }] = await Promise.all([get(path), get(`${path}/ticks?limit=20`)]);
  const again = async () => {
    await tasks.refresh();
    tasks.go(name);
  };
  const run = async () => {
    const { run_id: id } = await post(`${path}/run`);
    return el("span", {}, "Started: ", el("a", { href: `#/runs/${id}` }, "open the run"));
  };
  const toggle = async () => {
    await request(path, { method: "PATCH", body: { enabled: !schedule.enabled } });
    await again();
  };
  const remove = async () => {
    await request(path, { method: "DELETE" });
    tasks.leave();
    await tasks.refresh();
  };
  return [
    el("header", {}, el("h1", {}, name), el("p", {}, schedule.prompt || `The task ${schedule.task_id}`),
      el("p.facts", {}, el("span", {}, schedule.cron), el("span", {}, schedule.timezone), schedule.room && el("span", {}, `room ${schedule.room}`))),
    schedule.stopped && el("p.problem", {}, `Stopped: ${schedule.stopped}`),
    actions(["Run now", run, "primary"], [schedule.enabled ? "Pause" : "Resume", toggle], ["Remove", remove, "", `Remove the schedule ${name}?`]),
    part("Next", lines(schedule.next_ticks.map((at) => format(at, schedule.timezone)))),
    part("Last times", ticks.length ? el("ul.lines", {}, ticks.map((one) => tick(one, schedule.timezone))) : el("p.quiet", {}, "It has not run yet."))];
}

/** The form of a new schedule. */
export async function create(tasks) {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const element = el("form.form", { onsubmit: (event) => event.preventDefault() },
    field("Name", "name", "", { required: true, hint: "Letters, digits, dots, hyphens and underscores" }),
    field("When", "cron", "0 7 * * mon-fri", { required: true, hint: "Minute, hour, day of the month, month, day of the week; or @hourly, @daily, @weekly, @monthly, @yearly" }),
    field("Time zone", "timezone", zone), area("Request", "prompt", "", { hint: "The request, complete in itself: nobody can be asked when it runs" }),
    choice("While the last run is still going", "overlap", "skip", OVERLAPS),
    choice("For times missed while no gateway was running", "misfire", "run_once", MISFIRES));
  const save = async () => {
    const made = await post("v1/schedules", Object.fromEntries(new FormData(element)));
    tasks.go(made.name);
    await tasks.refresh();
  };
  return [el("header", {}, el("h1", {}, "New schedule")), element, actions(["Save schedule", save, "primary"])];
}

function tick({ tick: at, origin, outcome, run_id: id, run_status: status, detail }, zone) {
  const when = `${format(at, zone)}${origin === "manual" ? ", by hand" : ""}: `;
  return el("li", {}, when, id && status ? el("a", { href: `#/runs/${id}` }, status) : `${outcome}${detail ? `: ${detail}` : ""}`);
}
