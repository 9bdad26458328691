/** Team: what waits for a decision, usage and cost, API keys, and who did what. Each part is offered only to whom it is for. */

import { alarm } from "./answer.js";
import { approvals } from "./team_approvals.js";
import { audit } from "./team_audit.js";
import { errorText } from "./api.js";
import { me } from "./access.js";
import { el, fill } from "./dom.js";
import { keys } from "./team_keys.js";
import { people } from "./team_people.js";
import { usage } from "./team_usage.js";

const PARTS = [
  ["approvals", "Approvals", "approve", approvals], ["usage", "Usage", "", usage], ["people", "People", "admin", people], ["keys", "Keys", "admin", keys], ["audit", "Audit", "admin", audit],
];
const tabs = el("nav.tabs", { "aria-label": "Team" });
let stage = el("div.team");
let looks = 0; // one more for each part that is opened
export const view = el("section.view", { "aria-label": "Team" }, el("div.scroll", {}, el("div.column.wide", {}, tabs, stage)));

export async function show(part = "") {
  const look = (looks += 1);
  const { scopes } = await me();
  const offered = PARTS.filter(([, , scope]) => !scope || scopes.includes(scope));
  const [name, , , draw] = offered.find(([one]) => one === part) ?? offered[0];
  if (look !== looks) return; // another part was opened meanwhile
  fill(tabs, offered.map(([one, word]) => el("a", { href: `#/team/${one}`, "aria-current": one === name ? "page" : null }, word)));
  const next = el("div.team");
  await draw(next).catch((error) => fill(next, alarm(errorText(error))));
  if (look !== looks) return;
  stage.replaceWith(next);
  stage = next;
}
