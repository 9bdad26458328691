/** Studio: the things that features keep, a section for each kind, with a list beside the chosen thing. A section's module exports
 * `about`, what it is for, and `open(id, tasks)`, which draws a thing; `list()` unless it is `whole`, shown without a choice. It may
 * export `add`, the word of the button for a new one, with `create(tasks)` and the `scope` that this needs; `overview()`, which is
 * drawn while nothing is chosen; and `none`, what an empty list says. */

import { me } from "./access.js";
import { errorText } from "./api.js";
import { button, el, fill } from "./dom.js";
import { enterChat } from "./navigation.js";
import { partsIn } from "./parts.js";
import { entitle } from "./title.js";

const SECTIONS = new Map(partsIn("studio").map((one) => [one.name, one]));
const NEW = "new";

const tabs = el("nav.tabs", { "aria-label": "Studio" }, [...SECTIONS.values()].map(({ name, label }) =>
  el("a", { href: `#/studio/${name}` }, label)));
const list = el("ul.items", { "aria-label": "Things of this kind" });
const adder = el("div.pad");
const stage = el("div.stage");
export const view = el("section.view.split.studio", { "aria-label": "Studio" },
  el("div.side", {}, el("div.head", {}, el("h1", {}, "Studio")), el("div.scroll", {}, tabs, adder, list)), stage);

let section = "";
let kind = null; // the module of the section
let chosen = "";
let looks = 0; // one more for each place that is shown

export async function show(name = "", id = "") {
  const look = (looks += 1);
  const { scopes } = await me();
  const offered = [...SECTIONS.values()].filter((one) => !one.scope || scopes.includes(one.scope)).map((one) => one.name);
  const next = offered.includes(name) ? name : offered[0];
  if (!next) return fill(list, el("li.quiet.pad", {}, "This key cannot use any section of Studio."));
  const module = await SECTIONS.get(next).load().catch(unloaded);
  if (look !== looks) return; // another place was opened meanwhile
  [section, kind] = [next, module];
  if (section !== name) id = ""; // it is a thing of a section that this key does not see
  chosen = id;
  entitle("studio");
  for (const tab of tabs.children) tab.hidden = !offered.includes(tab.hash.split("/")[2]);
  for (const tab of tabs.children)
    if (tab.hash === `#/studio/${section}`) tab.setAttribute("aria-current", "page");
    else tab.removeAttribute("aria-current");
  view.classList.toggle("chosen", Boolean(id) || Boolean(kind.whole));
  view.classList.toggle("both", Boolean(kind.overview)); // on a narrow screen too
  fill(adder, kind.add && (!kind.scope || scopes.includes(kind.scope)) && button(kind.add, () => go(NEW), { picture: "plus" }));
  await Promise.all([refresh(), open(kind, id)]);
}

/** In place of a section that cannot be loaded. */
function unloaded(error) {
  const fail = () => Promise.reject(error);
  return { about: "", list: fail, open: fail };
}

/** Shows the chosen thing, the form for a new one, or what this section is for. */
async function open(module, id) {
  const page = el("div.column.run");
  const scroll = el("div.scroll", {}, page);
  const isOverview = !id && !module.whole;
  const back = isOverview ? null : module.whole ? el("a.back", { href: "#/studio" }, "Studio")
    : el("a.back", { href: `#/studio/${section}` }, `All ${SECTIONS.get(section).label.toLowerCase()}`);
  const tasks = { refresh, go, leave: () => go(""), enterChat };
  if (!id && !module.whole && !module.overview) return fill(stage, el("div.empty", {}, el("p", {}, module.about)));
  fill(stage, scroll);
  fill(page, back, el("p.quiet", { role: "status" }, "Loading …"));
  try {
    const content = id === NEW && module.create ? await module.create(tasks) : !id && module.overview ? await module.overview() : await module.open(id, tasks);
    if (id !== chosen || module !== kind || !stage.contains(page)) return;
    fill(page, back, content);
    entitle("studio", id && page.querySelector("h1")?.textContent);
  } catch (error) {
    fill(page, back, problem(error));
  }
}

function go(id) {
  const next = `#/studio/${section}${id ? `/${encodeURIComponent(id)}` : ""}`;
  if (location.hash === next) show(section, id);
  else location.hash = next;
}

async function refresh() {
  const module = kind;
  list.hidden = !module.list;
  if (!module.list) return;
  try {
    const items = await module.list();
    if (module !== kind) return; // another section was opened meanwhile
    fill(list, items.map(item), !items.length && el("li.quiet.pad", {}, module.none ?? "None yet.", el("p.narrow", {}, module.about)));
  } catch (error) {
    fill(list, el("li", {}, problem(error)));
  }
}

function item({ id, title, about, state = "", word = "" }) {
  return el("li", {}, el("a.item", {
    href: `#/studio/${section}/${encodeURIComponent(id)}`, "aria-current": id === chosen ? "page" : null },
  el("b.cut", {}, title), el("span.quiet.cut", {}, word && el(`span.tag.${state}`, {}, word), word && " ", about)));
}

const problem = (error) => el("p.problem.pad", { role: "alert" }, errorText(error));
