/** Runs: a list of earlier runs beside the explorer of the selected one. */

import { get, errorText } from "./api.js";
import { button, el, fill, moment, words } from "./dom.js";
import { explore } from "./explorer.js";

const FILTERS = {
  "": "All", running: "Running", awaiting_approval: "Waiting", succeeded: "Succeeded", partial: "Partial",
  failed: "Failed", cancelled: "Cancelled",
};
const NONE = "Choose a run to see its plan, its steps and what it cites.";

const filter = el("select.pill", { "aria-label": "Which runs", onchange: () => refresh() },
  Object.entries(FILTERS).map(([value, word]) => el("option", { value }, word)));
const list = el("ul.items");
const more = button("Older", () => load(next), { kind: "plain" });
const stage = el("div.stage");
export const view = el("section.view.split", { "aria-label": "Runs" },
  el("nav.side", { "aria-label": "Runs" },
    el("div.head", {}, el("h2", {}, "Runs"), filter), el("div.scroll", {}, list, more)), stage);

let rows = [];
let next = "";
let shown = "";
let following = null;

export async function show(id = "") {
  hide();
  shown = id;
  view.classList.toggle("chosen", Boolean(id));
  refresh();
  if (!id) return fill(stage, el("div.empty", {}, el("p", {}, NONE)));
  following = new AbortController();
  await explore(stage, id, { signal: following.signal, changed: refresh });
}

/** Stops updating when the view is closed. */
export function hide() {
  following?.abort();
  following = null;
}

function refresh() {
  rows = [];
  return load("");
}

async function load(before) {
  const wanted = new URLSearchParams({ limit: 50 });
  if (before) wanted.set("before", before);
  if (filter.value) wanted.set("status", filter.value);
  try {
    const page = await get(`v1/runs?${wanted}`);
    rows = before ? rows.concat(page.data) : page.data;
    next = page.next ?? "";
    fill(list, rows.map(item), !rows.length && el("li.quiet.pad", {}, "None."));
    more.hidden = !next;
  } catch (error) {
    fill(list, el("li.problem", { role: "alert" }, errorText(error)));
  }
}

function item(run) {
  const about = [words(run.status), run.room, moment(run.created_at)].join(" · ");
  return el("li", {}, el("a.item", { href: `#/runs/${run.id}`, "aria-current": run.id === shown ? "page" : null },
    el("b.cut", {}, run.title || "(no words)"), el("span.quiet.cut", {}, el(`span.dot.${run.status}`), about)));
}
