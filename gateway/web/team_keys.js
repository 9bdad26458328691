/** API keys: made with their scopes and limits, shown once, revoked. */

import { alarm } from "./answer.js";
import { errorText, get, post, send } from "./api.js";
import { confirming, count, el, fill, icon, moment, money, words } from "./dom.js";
import { copy } from "./html.js";

const SCOPES = {
  chat: "Chat, and their own conversations", agent: "Runs, documents and rooms", approve: "Decide on approvals", ingest: "Add and delete documents",
  rooms: "Create their own rooms and tools", mcp: "Use it from an IDE (MCP)", metrics: "Read metrics", admin: "Everything, for all owners",
};
const USUAL = new Set(["chat", "agent", "approve"]);

export async function keys(stage) {
  const listed = el("div");
  const refresh = () => list(listed, refresh);
  await refresh();
  fill(stage, el("h1", {}, "API keys"),
    el("p.lead", {}, "Each person or program has its own key. What belongs to an owner is visible only with that owner's keys."),
    form(refresh), listed);
}

async function list(listed, refresh) {
  const { data } = await get("v1/admin/keys");
  const valid = data.filter(isValid);
  fill(listed,
    el("section", {}, el("h2", {}, count(valid.length, "key")), valid.length ? el("ul.cardlist", {}, valid.map((key) => row(key, refresh))) : el("p.quiet", {}, "None yet. Calls from this machine need no key.")),
    data.length > valid.length && el("details", {}, el("summary", {}, `${data.length - valid.length} revoked or expired`), el("ul.cardlist", {}, data.filter((key) => !isValid(key)).map((key) => row(key, refresh)))));
}

/** Whether a key opens something now. */
export const isValid = (key) => !key.revoked_at && !(key.expires_at && new Date(key.expires_at) <= Date.now());

function row(key, refresh) {
  const limits = Object.entries(key.limits).filter(([, value]) => value !== null).map(([name, value]) => limit(name, value));
  const revoke = confirming("Revoke", "Really revoke?", async () => {
    await send("DELETE", `v1/admin/keys/${key.id}`);
    await refresh();
  }, { kind: "plain" });
  const used = key.last_used_at ? [`last used ${moment(key.last_used_at)}`, key.tokens && `${count(key.tokens, "token")}`] : ["not used yet"];
  return el("li.cardrow", {}, el("div", {}, el("b", {}, `${key.name} `, el("span.tag", {}, key.owner)),
    el("span.quiet", {}, [key.scopes.join(", "), key.tools && `only ${key.tools.join(", ")}`, ...limits, ...used, key.expires_at && isValid(key) && `until ${moment(key.expires_at)}`].filter(Boolean).join(" · "))),
  isValid(key) ? revoke : el("span.tag.blocking", {}, key.revoked_at ? `revoked ${moment(key.revoked_at)}` : `expired ${moment(key.expires_at)}`));
}

const LIMITS = { requests_per_minute: "requests a minute", tokens_per_minute: "tokens a minute", budget_tokens: "tokens in all", parallel_runs: "runs at once" };

/** A limit in words. */
function limit(name, value) {
  if (name === "budget_usd") return `${money(value)} in total`;
  return LIMITS[name] ? `${value.toLocaleString()} ${LIMITS[name]}` : `${words(name)} ${value.toLocaleString()}`;
}

function form(refresh) {
  const said = el("div", { role: "status" });
  const text = el("div.made");
  let isAtWork = false;
  const field = (title, props) => el("label", {}, title, el("input", { autocomplete: "off", ...props }));
  const made = el("form.form", { onsubmit: make },
    el("div.pair", {}, field("Owner", { name: "owner", required: true, maxLength: 200, placeholder: "anna" }), field("Name", { name: "name", required: true, maxLength: 200, placeholder: "laptop" })),
    el("fieldset", {}, el("legend", {}, "May"), Object.entries(SCOPES).map(([scope, word]) =>
      el("label.check", {}, el("input", { type: "checkbox", name: "scopes", value: scope, defaultChecked: USUAL.has(scope) }), el("span", {}, el("b", {}, scope), ` ${word}`)))),
    el("div.pair", {}, field("Total tokens", { name: "budget_tokens", type: "number", min: 1, placeholder: "no limit" }),
      field("Total cost, USD", { name: "budget_usd", type: "number", min: 0.01, step: "any", placeholder: "no limit" }),
      field("Requests a minute", { name: "requests_per_minute", type: "number", min: 1, placeholder: "no limit" }),
      field("Valid until", { name: "expires_on", type: "date" })),
    el("div.row", {}, el("button.button.primary", { type: "submit" }, icon("key"), "Create key")));

  async function make(event) {
    event.preventDefault();
    if (isAtWork) return; // pressed twice
    isAtWork = true;
    const given = new FormData(made);
    const limits = Object.fromEntries(["budget_tokens", "budget_usd", "requests_per_minute"].filter((name) => given.get(name)).map((name) => [name, Number(given.get(name))]));
    const day = given.get("expires_on");
    const expires = day ? { expires_at: new Date(`${day}T23:59:59`).toISOString() } : {};
    try {
      const key = await post("v1/admin/keys", { owner: given.get("owner"), name: given.get("name"), scopes: given.getAll("scopes"), limits, ...expires });
      fill(text, shownOnce(key.text));
      fill(said);
      made.reset();
      await refresh();
    } catch (error) {
      fill(said, alarm(errorText(error)));
    } finally {
      isAtWork = false;
    }
  }

  return el("details.offer", {}, el("summary", {}, "Create a key"), made, said, text);
}

/** A key's text: it cannot be shown again. */
function shownOnce(text) {
  const press = el("button.tool", { type: "button", title: "Copy key", "aria-label": "Copy key", onclick: () => copy(text, press) }, icon("copy"));
  queueMicrotask(() => {
    press.closest("details")?.setAttribute("open", "");
    press.scrollIntoView({ block: "center" });
  });
  return el("div.banner.info", { role: "status" }, icon("key"), el("div", {}, el("p", {}, "Copy it now: it is not shown again."), el("code", {}, text)), press);
}
