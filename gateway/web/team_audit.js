/** The audit record: who did what, newest first. */

import { get } from "./api.js";
import { button, el, fill, moment } from "./dom.js";

const KINDS = { "": "Everything", key: "Keys", approval: "Approvals", room: "Rooms", document: "Documents", run: "Runs", user: "People", model: "Models", mcp: "MCP servers" };
let kind = "";

export async function audit(stage) {
  const body = el("tbody");
  const more = button("Older", () => load(next), { kind: "plain" });
  let next = null;
  const pick = el("select.pill", { "aria-label": "Kind", onchange: () => ((kind = pick.value), audit(stage)) }, Object.entries(KINDS).map(([value, word]) => el("option", { value, selected: value === kind }, word)));

  async function load(before) {
    const wanted = new URLSearchParams({ limit: 100, ...(kind && { action: kind }), ...(before && { before }) });
    const page = await get(`v1/audit?${wanted}`);
    next = page.next;
    more.hidden = !next;
    body.append(...page.data.map((one) => el("tr", {}, el("td", {}, moment(one.at)), el("td", {}, one.principal), el("td", {}, one.action, one.outcome !== "done" && el("span.tag.blocking", {}, one.outcome)), el("td", {}, one.target), el("td", {}, one.owner))));
  }

  await load(null);
  fill(stage, el("h1", {}, "Audit"), el("div.row", {}, pick),
    body.childElementCount ? el("div.table.prose", { tabIndex: 0, role: "region", "aria-label": "Audit record" }, el("table", {},
      el("thead", {}, el("tr", {}, ["When", "Who", "What", "Which", "Whose"].map((word) => el("th", { scope: "col" }, word)))), body))
      : el("p.quiet", {}, "Nothing is recorded yet."), more);
}
