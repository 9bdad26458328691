/** Two runs in a table: what differs between them is bold. */

import { get } from "./api.js";
import { el, money, seconds, short, stateOf, table, words } from "./dom.js";
import { lasted } from "./timeline.js";

const FACTS = [
  ["Status", stateOf],
  ["Room", ({ room }) => room],
  ["Took", (run) => seconds(lasted(run))],
  ["Steps", ({ plan }) => String(plan?.steps.length ?? 0)],
  ["Tools", ({ response }) => unique(response.steps.filter((step) => step.type === "step").map((step) => words(step.title)))],
  ["Models", ({ model_calls: calls }) => unique(calls.map((call) => short(call.model)))],
  ["Tokens", ({ response }) => (response.metadata.usage?.total_tokens ?? 0).toLocaleString()],
  ["Cost", ({ response }) => (response.metadata.usage?.cost_usd ? money(response.metadata.usage.cost_usd) : "–")],
  ["Sources", ({ response }) => String(response.metadata.sources?.length ?? 0)],
  ["Answer", ({ response }) => `${response.response.length.toLocaleString()} characters`, (one, other) => one.response.response === other.response.response],
];

/** The table of two runs by their ids. Throws `Failure`. */
export async function comparison(ids, signal) {
  const [one, other] = await Promise.all(ids.map((id) => get(`v1/runs/${id}`, { signal })));
  const row = ([word, format, isSame = () => format(one) === format(other)]) => {
    const cell = isSame(one, other) ? (value) => value : (value) => el("b", {}, value);
    return [word, cell(format(one)), cell(format(other))];
  };
  const name = ({ id, title }) => el("a.cut", { href: `#/runs/${id}`, title }, title || "(no words)");
  return table("The two runs compared", ["", name(one), name(other)], FACTS.map(row));
}

const unique = (names) => [...new Set(names)].join(", ") || "none";
