/** The map: rooms, skills, tools, servers, collections and prompts as columns, with the links of the chosen one. */

import { get } from "../api.js";
import { canvas, count, curve, el, fill, words } from "../dom.js";
import { addStyle } from "../parts.js";

await addStyle(import.meta.url, "map.css");

export const about = "All things here, and what uses what.";
export const whole = true; // shown without a choice

const ORDER = ["prompt", "room", "skill", "tool", "server", "collection"];
const GAP = 56;

/** The picture, a field that filters it, and the links of the chosen entity in words. */
export async function open(id) {
  const { entities, links } = await get("v1/studio/graph");
  const known = new Map(entities.map((one) => [one.id, one]));
  const search = el("input", { type: "search", "aria-label": "Find by name", placeholder: "Find by name", oninput: () => sift() });
  const told = el("div", { role: "status" });
  const lines = canvas("edges");
  const nodes = new Map();
  const kinds = [...new Set(entities.map((one) => one.type))].sort((a, b) => place(a) - place(b));
  const columns = kinds.map((kind) => {
    const own = entities.filter((one) => one.type === kind);
    const element = el("div.kindred", {}, el("h2.kind", {}, `${words(kind)}s (${own.length})`), own.map(node));
    return { element, own: own.map((one) => one.id) };
  });
  const box = el("div.graph.map", { role: "group", "aria-label": "Map" }, lines, columns.map((one) => one.element));
  let chosen = known.has(id) ? id : "";

  function node(one) {
    const press = el("button.entity", { type: "button", title: one.description, "aria-pressed": "false", onclick: () => choose(one.id) }, one.title || one.name);
    nodes.set(one.id, press);
    return press;
  }

  function choose(next) {
    chosen = chosen === next ? "" : next;
    const near = new Set(links.filter((one) => one.source === chosen || one.target === chosen).flatMap((one) => [one.source, one.target]));
    for (const [key, press] of nodes) {
      press.setAttribute("aria-pressed", String(key === chosen));
      press.classList.toggle("far", Boolean(chosen) && key !== chosen && !near.has(key));
    }
    arrange(near);
    fill(told, chosen ? describe(known.get(chosen)) : el("p.quiet", {}, `${count(entities.length, "thing")}, ${count(links.length, "link")}. Choose one to see what it is linked to.`));
    draw();
  }

  /** Moves what is linked with the chosen entity to the top of its column. */
  function arrange(near) {
    const held = box.contains(document.activeElement) ? document.activeElement : null;
    for (const { element, own } of columns)
      if (!own.includes(chosen)) element.append(...[...own].sort((a, b) => near.has(b) - near.has(a)).map((key) => nodes.get(key)));
    held?.focus({ preventScroll: true });
  }

  function describe(one) {
    const line = (other, text) => el("li", {}, `${text} `, el("button.plain.linked", { type: "button", onclick: () => choose(other.id) }, other.title || other.name), ` (${words(other.type)})`);
    const out = links.filter((link) => link.source === one.id && known.has(link.target)).map((link) => line(known.get(link.target), words(link.kind)));
    const into = links.filter((link) => link.target === one.id && known.has(link.source)).map((link) => line(known.get(link.source), `${words(link.kind)} it:`));
    return [el("h2", {}, one.title || one.name), el("p.quiet", {}, one.description || words(one.type)),
      out.length + into.length ? el("ul.lines.linkage", {}, out, into) : el("p.quiet", {}, "Nothing is linked to it.")];
  }

  function sift() {
    const wanted = search.value.trim().toLowerCase();
    for (const [key, press] of nodes) press.hidden = Boolean(wanted) && !`${key} ${press.textContent}`.toLowerCase().includes(wanted);
    draw();
  }

  function draw() {
    const at = box.getBoundingClientRect();
    lines.replaceChildren();
    for (const { source, target } of links) {
      const isOwn = source === chosen || target === chosen;
      if (chosen && !isOwn) continue;
      const ends = [nodes.get(source), nodes.get(target)];
      if (ends.some((end) => !end || end.hidden)) continue;
      const [from, to] = ends.map((end) => end.getBoundingClientRect()).sort((a, b) => a.left - b.left);
      if (from.right >= to.left) continue;
      const path = curve(from.right - at.left + box.scrollLeft, from.top + from.height / 2 - at.top + box.scrollTop,
        to.left - at.left + box.scrollLeft, to.top + to.height / 2 - at.top + box.scrollTop, GAP);
      if (isOwn) path.setAttribute("class", "own");
      lines.append(path);
    }
    lines.style.width = `${box.scrollWidth}px`;
    lines.style.height = `${box.scrollHeight}px`;
  }

  new ResizeObserver(draw).observe(box);
  const first = chosen;
  chosen = "";
  choose(first);
  return [el("header", {}, el("h1", {}, "Map"), search), told, box];
}

const place = (kind) => (ORDER.includes(kind) ? ORDER.indexOf(kind) : ORDER.length);
