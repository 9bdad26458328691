/** People: the owners of keys and runs, with what they have used, what is left of their budgets, and deleting one. */

import { LOCAL } from "./access.js";
import { alarm } from "./answer.js";
import { errorText, get, send } from "./api.js";
import { button, count, el, fill, moment, money } from "./dom.js";
import { isValid } from "./team_keys.js";

const DAYS = 30;

export async function people(stage) {
  const since = new Date(Date.now() - DAYS * 86_400_000).toISOString();
  const [{ data: keys }, { data: used }] = await Promise.all([
    get("v1/admin/keys"), get(`v1/usage?by=owner&owner=*&since=${encodeURIComponent(since)}`)]);
  const names = [...new Set([...keys.map((one) => one.owner), ...used.map((one) => one.owner)])].filter(Boolean).sort();
  fill(stage, el("h1", {}, "People"),
    el("p.lead", {}, "Everyone who has a key or has sent a request. Nobody sees what belongs to somebody else."),
    names.length ? el("ul.cardlist", {}, names.map((name) => person(name, keys.filter((one) => one.owner === name), used.find((one) => one.owner === name), stage)))
      : el("p.quiet", {}, "Nobody yet. ", el("a", { href: "#/team/keys" }, "Create a key"), " for each person."));
}

function person(name, keys, used, stage) {
  const valid = keys.filter(isValid);
  const last = valid.map((one) => one.last_used_at).filter(Boolean).sort().at(-1);
  const facts = [
    count(valid.length, "key"), used ? `${count(used.runs, "run")} in ${DAYS} days` : `no run in ${DAYS} days`,
    used && count(used.prompt_tokens + used.completion_tokens, "token"), used?.cost_usd && money(used.cost_usd), last && `last seen ${moment(last)}`,
  ];
  return el("li.cardrow", {}, el("div", {},
    el("b", {}, name === LOCAL ? "This machine, without a key" : name),
    el("span.quiet", {}, facts.filter(Boolean).join(" · ")), valid.map(budgets)),
  name !== LOCAL && deleting(name, stage));
}

/** What a key has used of its limits, as bars. */
function budgets({ name, limits, tokens, cost_usd: cost }) {
  const rows = [[limits.budget_tokens, tokens, (value) => `${value.toLocaleString()} tokens`], [limits.budget_usd, cost, money]];
  return rows.filter(([limit]) => limit).map(([limit, used, format]) =>
    el("label.budget.quiet", {}, `${name}: ${format(used)} of ${format(limit)}`, el("progress.share", { max: limit, value: Math.min(used, limit) })));
}

/** Deletes a person and everything of theirs, once the name was written: it cannot be undone. */
function deleting(name, stage) {
  const field = el("input", { "aria-label": `Write ${name} to delete everything of theirs`, placeholder: name, autocomplete: "off" });
  const said = el("div", { role: "status" });
  const press = button("Delete everything", async () => {
    if (field.value.trim() !== name) return void fill(said, el("p.problem", {}, `Write “${name}” to confirm.`));
    press.disabled = true;
    try {
      await send("DELETE", `v1/users/${encodeURIComponent(name)}`);
      await people(stage);
    } catch (error) {
      press.disabled = false;
      fill(said, alarm(errorText(error)));
    }
  }, { kind: "plain", picture: "trash" });
  return el("details", {}, el("summary", {}, "Delete …"), el("p.quiet", {}, `Deletes the keys, chats, runs, memories and documents of ${name}. It cannot be undone.`), el("div.row", {}, field, press), said);
}
