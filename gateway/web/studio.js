/** Studio: rooms, generated tools, prompts, recipes, schedules, the queue, and the map of what there is. A list beside the chosen thing. */

import { me } from "./access.js";
import { errorText } from "./api.js";
import { button, el, fill } from "./dom.js";
import * as map from "./studio_map.js";
import * as prompts from "./studio_prompts.js";
import * as queue from "./studio_queue.js";
import * as recipes from "./studio_recipes.js";
import * as rooms from "./studio_rooms.js";
import * as schedules from "./studio_schedules.js";
import * as tools from "./studio_tools.js";
import { entitle } from "./title.js";

const SECTIONS = { rooms, tools, prompts, recipes, schedules, queue, map };
const SCOPES = { rooms: "rooms", queue: "admin" }; // of sections that not every key may see
const NEW = "new";

const tabs = el("nav.tabs", { "aria-label": "Studio" }, Object.entries(SECTIONS).map(([name, one]) =>
  el("a", { href: `#/studio/${name}` }, one.title)));
const list = el("ul.items", { "aria-label": "Things of this kind" });
const adder = el("div.pad");
const stage = el("div.stage");
export const view = el("section.view.split.studio", { "aria-label": "Studio" },
  el("div.side", {}, el("div.head", {}, el("h1", {}, "Studio")), el("div.scroll", {}, tabs, adder, list)), stage);

let enterChat = () => {};
let section = "rooms";
let chosen = "";

/** The target of "Try it": called with a room and the first words of a message. */
export const leadTo = (go) => (enterChat = go);

export async function show(name = "", id = "") {
  const { scopes } = await me();
  const offered = Object.keys(SECTIONS).filter((one) => !SCOPES[one] || scopes.includes(SCOPES[one]));
  section = offered.includes(name) ? name : offered[0];
  if (section !== name) id = ""; // it is a thing of a section that this key does not see
  chosen = id;
  entitle("studio");
  const kind = SECTIONS[section];
  for (const tab of tabs.children) tab.hidden = !offered.includes(tab.hash.split("/")[2]);
  for (const tab of tabs.children)
    if (tab.hash === `#/studio/${section}`) tab.setAttribute("aria-current", "page");
    else tab.removeAttribute("aria-current");
  view.classList.toggle("chosen", Boolean(id) || Boolean(kind.whole));
  view.classList.toggle("both", Boolean(kind.overview)); // on a narrow screen too
  fill(adder, kind.add && (!kind.scope || scopes.includes(kind.scope)) && button(kind.add, () => go(NEW), { picture: "plus" }));
  await Promise.all([refresh(), open(kind, id)]);
}

/** Shows the chosen thing, the form for a new one, or what this section is for. */
async function open(kind, id) {
  const page = el("div.column.run");
  const scroll = el("div.scroll", {}, page);
  const isOverview = !id && !kind.whole;
  const back = isOverview ? null : kind.whole ? el("a.back", { href: "#/studio" }, "Studio")
    : el("a.back", { href: `#/studio/${section}` }, `All ${kind.title.toLowerCase()}`);
  const tasks = { refresh, go, leave: () => go(""), enterChat: (room, text) => enterChat(room, text) };
  if (!id && !kind.whole && !kind.overview) return fill(stage, el("div.empty", {}, el("p", {}, kind.about)));
  fill(stage, scroll);
  fill(page, back, el("p.quiet", { role: "status" }, "Loading …"));
  try {
    const content = id === NEW && kind.create ? await kind.create(tasks) : !id && kind.overview ? await kind.overview() : await kind.open(id, tasks);
    if (id !== chosen || kind !== SECTIONS[section] || !stage.contains(page)) return;
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
  const kind = SECTIONS[section];
  list.hidden = !kind.list;
  if (!kind.list) return;
  try {
    const items = await kind.list();
    if (kind !== SECTIONS[section]) return; // another section was opened meanwhile
    fill(list, items.map(item), !items.length && el("li.quiet.pad", {}, kind.none ?? "None yet.", el("p.narrow", {}, kind.about)));
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
