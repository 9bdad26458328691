/** The tools that an assistant may use here, by where they come from. */

import { may } from "../access.js";
import { get } from "../api.js";
import { count, el, words } from "../dom.js";
import { addStyle } from "../parts.js";

await addStyle(import.meta.url, "tools.css");

const EFFECTS = { read: "reads only", idempotent: "may be repeated", effect: "changes something" };

/** Returns the tools that come with the gateway, its features and its servers, with a field that narrows the list. */
export async function catalogue() {
  const [{ data }, mayMake] = await Promise.all([get("v1/tools"), may("rooms")]);
  const rows = data.map((one) => ({ text: `${one.name} ${one.description}`.toLowerCase(), node: tool(one) }));
  const found = el("p.quiet", { role: "status" });
  const search = el("input", { type: "search", placeholder: "Search tools", "aria-label": "Search tools", oninput: () => {
    const wanted = search.value.trim().toLowerCase();
    for (const { text, node } of rows) node.hidden = !text.includes(wanted);
    found.textContent = wanted && count(rows.filter(({ node }) => !node.hidden).length, "tool");
  } });
  return [
    el("header", {}, el("h1", {}, count(rows.length, "tool")), el("p.quiet", {}, "What rooms may use.", mayMake && " “New tool” has a model write another one.")),
    search, found,
    el("ul.items.tools-of", {}, rows.map(({ node }) => node)),
  ];
}

function tool({ name, description, effect, origin }) {
  const [first] = description.split("\n");
  return el("li", {}, el("details", {}, el("summary", {}, el("b", {}, name), el("span.quiet", {}, ` ${first}`)),
    el("p.facts", {}, el("span", {}, EFFECTS[effect] ?? words(effect)), origin && el("span", {}, `from ${origin}`)), description !== first && el("p.plaintext", {}, description)));
}
