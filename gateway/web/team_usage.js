/** Usage and cost: by day as bars, and by room, model, key and owner as tables. */

import { get } from "./api.js";
import { may } from "./access.js";
import { attempt, el, fill, money, table } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";
const SPANS = { "7d": "7 days", "30d": "30 days", "90d": "90 days", "365d": "A year" };
const WORDS = { room: "Room", model: "Model", key: "Key", owner: "Owner" };
const DAY = new Intl.DateTimeFormat([], { dateStyle: "medium", timeZone: "UTC" }); // the gateway's days are those of UTC
let span = "30d";
let everybody = true;

export async function usage(stage) {
  const days = Number.parseInt(span, 10);
  const since = new Date(Date.now() - days * 86_400_000).toISOString();
  const isAdmin = await may("admin");
  const owner = everybody && isAdmin ? "&owner=*" : "";
  const ask = (by) => get(`v1/usage?since=${encodeURIComponent(since)}&by=${by}${owner}`);
  const [byDay, ...tables] = await Promise.all(["day", "model", "room", "key", ...(owner ? ["owner"] : [])].map(ask));
  const { data: keys } = isAdmin ? await get("v1/admin/keys") : { data: [] };
  const names = new Map(keys.map((one) => [one.id, `${one.name} (${one.owner})`]));
  const again = (change) => ({ currentTarget: at }) => {
    change(at);
    attempt(at, () => usage(stage));
  };
  const pick = el("select.pill", { "aria-label": "Time", onchange: again((at) => (span = at.value)) }, Object.entries(SPANS).map(([value, word]) => el("option", { value, selected: value === span }, word)));
  const all = isAdmin && el("label.check", {}, el("input", { type: "checkbox", checked: everybody, onchange: again((at) => (everybody = at.checked)) }), "All owners");
  const { total } = byDay;
  fill(stage,
    el("h1", {}, "Usage"),
    el("div.row", {}, pick, all),
    el("p.facts.large", {}, fact(total.runs, "run"), fact(total.model_calls, "model call"), fact(total.prompt_tokens + total.completion_tokens, "token"), total.cost_usd !== null && el("span", {}, el("b", {}, money(total.cost_usd)), " known cost")),
    total.runs ? [total.model_calls > 0 && plot("Tokens a day", byDay.data, days, (one) => one.prompt_tokens + one.completion_tokens, (value) => value.toLocaleString()),
      total.cost_usd > 0 && plot("Cost a day", byDay.data, days, (one) => one.cost_usd ?? 0, money)] : el("p.quiet", {}, "No run has ended in this time."),
    ["model", "room", "key", ...(owner ? ["owner"] : [])].map((by, at) => tableOf(by, tables[at].data, names)));
}

const fact = (number, word) => el("span", {}, el("b", {}, number.toLocaleString()), ` ${word}${number === 1 ? "" : "s"}`);

/** A day of the gateway, as its dates are written here. */
const named = (date) => DAY.format(new Date(date));

/** Bars by day. Its numbers are in a title each, and in words for who does not see it. */
function plot(title, data, days, value, format) {
  const known = new Map(data.map((one) => [one.day, value(one)]));
  const dates = Array.from({ length: days + 1 }, (_, at) => new Date(Date.now() - (days - at) * 86_400_000).toISOString().slice(0, 10));
  const most = Math.max(...dates.map((date) => known.get(date) ?? 0), 1e-9);
  const node = (name, attributes, text) => {
    const made = document.createElementNS(SVG, name);
    for (const [key, one] of Object.entries(attributes)) made.setAttribute(key, one);
    if (text) made.textContent = text;
    return made;
  };
  const width = 600 / dates.length;
  const svg = node("svg", { viewBox: "0 0 600 120", class: "plot", role: "img", "aria-label": `${title}: at most ${format(most)}`, preserveAspectRatio: "none" });
  dates.forEach((date, at) => {
    const amount = known.get(date) ?? 0;
    const height = (110 * amount) / most;
    const bar = node("rect", { x: at * width + width * 0.12, y: 118 - height, width: width * 0.76, height: Math.max(height, amount ? 2 : 0.6), rx: 1.5, class: amount ? "amount" : "none" });
    bar.append(node("title", {}, `${named(date)}: ${format(amount)}`));
    svg.append(bar);
  });
  return el("figure.figure", {}, el("figcaption", {}, el("b", {}, title), el("span.quiet", {}, `at most ${format(most)}`)), svg,
    el("div.axis.quiet", { "aria-hidden": "true" }, el("span", {}, named(dates[0])), el("span", {}, named(dates.at(-1)))));
}

const NONE = { key: "without a key", model: "by rules" };

function tableOf(by, data, names) {
  if (!data.length || (by === "owner" && data.length < 2)) return null;
  const cost = (one) => (one.model_calls === 0 ? "–" : one.cost_usd === null ? "unknown" : money(one.cost_usd));
  const cells = (one) => [names.get(one[by]) || one[by] || NONE[by] || "none", one.runs, one.model_calls, one.prompt_tokens, one.completion_tokens, cost(one)];
  const sorted = [...data].sort((one, other) => other.prompt_tokens + other.completion_tokens - one.prompt_tokens - one.completion_tokens);
  return el("section", {}, el("h2", {}, `By ${WORDS[by].toLowerCase()}`),
    table(`Usage by ${by}`, [WORDS[by], "Runs", "Calls", "Tokens in", "Tokens out", "Cost"], sorted.map(cells), { end: 1 }));
}
