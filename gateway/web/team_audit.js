/** The audit record: who did what, newest first. */

import { personOf } from "./access.js";
import { get } from "./api.js";
import { attempt, button, el, fill, moment, table, tableRow } from "./dom.js";

const KINDS = {
  "": "Everything", key: "Keys", approval: "Approvals", room: "Rooms", prompt: "Prompts", document: "Documents", collection: "Collections",
  source: "Sources", file_root: "Folders", memory: "Memories", conversation: "Pipelines", run: "Runs", user: "People", model: "Models", mcp: "MCP servers" };
let kind = "";

export async function audit(stage) {
  const shown = table("Audit record", ["When", "Who", "What", "Which", "Whose"], []);
  const body = shown.querySelector("tbody");
  const more = button("Older", () => load(next), { kind: "plain" });
  let next = null;
  const pick = el("select.pill", { "aria-label": "Kind", onchange: () => ((kind = pick.value), attempt(pick, () => audit(stage))) }, Object.entries(KINDS).map(([value, word]) => el("option", { value, selected: value === kind }, word)));

  async function load(before) {
    const wanted = new URLSearchParams({ limit: 100, ...(kind && { action: kind }), ...(before && { before }) });
    const page = await get(`v1/audit?${wanted}`);
    if (before !== next) return; // pressed twice
    next = page.next;
    more.hidden = !next;
    body.append(...page.data.map((one) => tableRow([
      moment(one.at), personOf(one.principal), [one.action, one.outcome !== "done" && el("span.tag.blocking", {}, one.outcome)], one.target, personOf(one.owner)])));
  }

  await load(null);
  fill(stage, el("h1", {}, "Audit"), el("div.row", {}, pick),
    body.childElementCount ? shown : el("p.quiet", {}, kind ? "Nothing of this kind is recorded." : "Nothing is recorded yet."), more);
}
