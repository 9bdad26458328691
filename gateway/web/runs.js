/** Runs: earlier runs by words, status, room and time, beside the explorer of the selected one; two runs side by side. */

import { me, readsAll } from "./access.js";
import { get, errorText } from "./api.js";
import { comparison } from "./compare.js";
import { attempt, button, count, el, fill, keepLooking, moment, money, short, stateOf } from "./dom.js";
import { explore } from "./explorer.js";
import { entitle } from "./title.js";

const FILTERS = {
  "": "Any status", queued: "Queued", running: "Running", awaiting_approval: "Waiting", succeeded: "Succeeded", partial: "Partial",
  failed: "Failed", cancelled: "Stopped",
};
const SPANS = { "": "Any time", "1d": "Last day", "7d": "Last week", "30d": "Last month" };
const DAY_MS = 86_400_000;
const PAGE = 50; // runs that are loaded at once
const LOOK_MS = 10_000; // between two looks for runs that began or went on
const NONE = "Choose a run to see its plan, its steps and what it cites.";

const choice = (label, options) => el("select.pill", { "aria-label": label, onchange: () => refresh() },
  Object.entries(options).map(([value, word]) => el("option", { value }, word)));
const search = el("input", { type: "search", placeholder: "Search requests", "aria-label": "Search requests", oninput: () => later() });
const filter = choice("Status", FILTERS);
const span = choice("Time", SPANS);
const rooms = choice("Room", { "": "All rooms" });
const models = choice("Model", { "": "All models" });
const costs = choice("Cost", { "": "Any cost", "0.001": "From $0.001", "0.01": "From $0.01", "0.1": "From $0.10", "1.0": "From $1" }); // a key like "1" would come first
const owners = choice("Owner", { "": "My runs", "*": "All owners" });
owners.hidden = true;
const list = el("ul.items");
const more = button("Older", () => load(next), { kind: "plain" });
more.hidden = true; // until there are older ones
const stage = el("div.stage");
export const view = el("section.view.split", { "aria-label": "Runs" },
  el("nav.side", { "aria-label": "Runs" },
    el("div.seek", {}, el("h1", {}, "Runs"), search, el("div.filters", {}, filter, span, rooms, owners, models, costs)), el("div.scroll", {}, list, more)), stage);

let rows = [];
let next = "";
let shown = "";
let following = null;
let looks = 0; // at the list's beginning so far: only the newest is shown
let timer = 0;

export async function show(id = "", other = "") {
  hide();
  shown = id;
  entitle("runs");
  view.classList.toggle("chosen", Boolean(id));
  refresh();
  loadChoices();
  if (!id) return fill(stage, el("div.empty", {}, el("p", {}, NONE)));
  following = new AbortController();
  const { signal } = following;
  if (!other) return explore(stage, id, { signal, changed: refresh, offers: compareWith, named: (title) => signal.aborted || entitle("runs", title) });
  const sides = [el("div.stage"), el("div.stage")];
  const table = el("div.differences");
  fill(stage, el("div.compare", {}, table, sides));
  const compare = async () => fill(table, await comparison([id, other], signal));
  await Promise.all([attempt(table, compare), explore(sides[0], id, { signal, changed: refresh }), explore(sides[1], other, { signal, changed: refresh })]);
}

/** Stops updating when the view is closed. */
export function hide() {
  following?.abort();
  following = null;
}

/** A choice among the listed runs, to be seen beside one. */
function compareWith(id) {
  const others = rows.filter((run) => run.id !== id);
  if (!others.length) return null;
  const pick = el("select.pill", { "aria-label": "Compare with", onchange: () => pick.value && (location.hash = `#/runs/${id}/${pick.value}`) },
    el("option", { value: "" }, "Compare with …"), others.map((run) => el("option", { value: run.id }, `${run.title || "(no words)"} · ${moment(run.created_at)}`)));
  return pick;
}

/** Offers the rooms there are and the models that were asked; what there is only one of is no choice. */
async function loadChoices() {
  loadOwners();
  if (rooms.options.length > 1) return;
  const none = () => ({ data: [] });
  const [{ data: known }, { data: asked }] = await Promise.all([get("v1/models").catch(none), get("v1/usage?by=model").catch(none)]);
  rooms.append(...known.filter((one) => !one.model).map((room) => el("option", { value: room.id }, room.name || room.id)));
  models.append(...asked.filter((one) => one.model).map(({ model }) => el("option", { value: model }, short(model))));
  models.hidden = models.options.length < 3;
  costs.hidden = !asked.some((one) => one.cost_usd > 0);
}

/** Offers the runs of others to who may read them. */
async function loadOwners() {
  if (owners.options.length > 2 || !(await readsAll())) return;
  const { owner: mine } = await me();
  const { data } = await get("v1/usage?by=owner&owner=*").catch(() => ({ data: [] }));
  const others = data.map((one) => one.owner).filter((one) => one && one !== mine);
  owners.append(...others.map((one) => el("option", { value: one }, one)));
  owners.hidden = !others.length;
}

function later() {
  clearTimeout(timer);
  timer = setTimeout(refresh, 250);
}

function refresh() {
  return load("");
}

/** The runs that are wanted, as parameters of a request. */
function filters(before = "") {
  const wanted = new URLSearchParams({ limit: PAGE });
  if (before) wanted.set("before", before);
  if (owners.value) wanted.set("owner", owners.value);
  if (filter.value) wanted.set("status", filter.value);
  if (rooms.value) wanted.set("room", rooms.value);
  if (models.value) wanted.set("model", models.value);
  if (costs.value) wanted.set("min_cost_usd", costs.value);
  if (search.value.trim()) wanted.set("query", search.value.trim());
  if (span.value) wanted.set("since", new Date(Date.now() - Number.parseInt(span.value, 10) * DAY_MS).toISOString());
  return wanted;
}

async function load(before) {
  const look = (looks += before ? 0 : 1);
  try {
    const page = await get(`v1/runs?${filters(before)}`);
    if (before ? before !== next : look !== looks) return; // pressed twice, or filtered otherwise meanwhile
    rows = before ? rows.concat(page.data) : page.data;
    next = page.next ?? "";
    draw();
  } catch (error) {
    fill(list, el("li.problem", { role: "alert" }, errorText(error)));
  }
}

function draw() {
  const focused = list.contains(document.activeElement) ? document.activeElement.hash : "";
  const none = filters().size > 1 ? "No matching runs." : "Every request is kept here with its plan and steps.";
  fill(list, rows.map(item), !rows.length && el("li.quiet.pad", {}, none));
  more.hidden = !next;
  if (focused) list.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
}

/** Shows runs that began or went on meanwhile; older ones that were asked for stay. */
async function look() {
  if (!view.checkVisibility()) return;
  const number = looks;
  const page = await get(`v1/runs?${filters()}`, { quiet: true }).catch(() => null); // the next look may succeed
  if (!page || number !== looks) return; // filtered otherwise meanwhile
  const [before, newest] = [JSON.stringify(rows), new Set(page.data.map((one) => one.id))];
  if (rows.length <= PAGE) [rows, next] = [page.data, page.next ?? ""];
  else rows = page.data.concat(rows.filter((one) => !newest.has(one.id) && one.created_at <= page.data.at(-1)?.created_at));
  if (JSON.stringify(rows) !== before) draw();
}

keepLooking(look, LOOK_MS);

function item(run) {
  const about = [moment(run.created_at), stateOf(run), owners.value && run.owner, run.room,
    run.total_tokens && count(run.total_tokens, "token"), run.cost_usd && money(run.cost_usd)].filter(Boolean).join(" · ");
  return el("li", {}, el("a.item", { href: `#/runs/${run.id}`, "aria-current": run.id === shown ? "page" : null },
    el("b.cut", { dir: "auto" }, run.title || "(no words)"), el("span.quiet.cut", { title: about }, el(`span.dot.${run.did_nothing ? "idle" : run.status}`), about)));
}
