/** The panel of a citation: the quoted words, their place, and the ways to what is behind them, as a feature offers them. */

import { errorText } from "./api.js";
import { attempt, button, el, fill } from "./dom.js";
import { link, safeUrl } from "./html.js";
import { partIn } from "./parts.js";

const panel = document.getElementById("panel");
let opener = null;

/** Returns the handler of `[n]` in an answer, for `showHtml`. */
export function citing({ sources = [], citations = [] }) {
  const known = new Map(sources.map((source) => [source.id, source]));
  return (number) => (known.has(number) ? () => openSource(known.get(number), citations) : null);
}

/** The sources of an answer as a row of buttons. */
export function sourceRow({ sources = [], citations = [] }) {
  if (!sources.length) return null;
  const chip = (source) =>
    el("button.chip", { type: "button", onclick: () => openSource(source, citations) },
      el("b", {}, source.id), el("span", { dir: "auto" }, source.name));
  return el("div.chips", { role: "group", "aria-label": "Sources" }, sources.map(chip));
}

/** A list of all quotes of an answer. */
export function citationList({ sources = [], citations = [] }) {
  return el("ul.quotes", {}, sources.map((source) =>
    el("li", {}, el("button.plain", { type: "button", onclick: () => openSource(source, citations) },
      el("b.cite", {}, source.id), el("span.name", { dir: "auto" }, source.name)),
    quotesOf(source, citations).slice(0, 2).map((quote) => el("blockquote", { dir: "auto" }, quote.words)))));
}

/** Shows a source with its quotes. */
export function openSource(source, citations = []) {
  const quotes = quotesOf(source, citations);
  opener = document.activeElement;
  const shut = button("", close, { kind: "plain", picture: "close", title: "Close (Escape)" });
  shut.setAttribute("aria-label", "Close");
  fill(panel,
    el("header", {}, el("b.cite", {}, source.id), el("h2", { dir: "auto" }, source.name), shut),
    el("div.scroll", {}, quotes.map((quote) => quoted(quote)),
      !quotes.length && el("p.quiet", {}, "No words were quoted from this source."),
      outside(source)));
  panel.hidden = false;
  shut.focus();
}

/** Hides the panel and returns the focus to the element that opened it. */
export function close() {
  if (panel.hidden) return;
  panel.hidden = true;
  opener?.focus?.();
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !document.querySelector("dialog[open]")) close();
});

function quotesOf(source, citations) {
  const cited = citations.filter((citation) => citation.source_id === source.id);
  const found = cited.map((citation) => ({ words: citation.quote, at: citation.evidence, where: citation.location }));
  for (const words of source.quotes ?? [])
    if (!found.some((quote) => quote.words === words)) found.push({ words, at: null, where: "" });
  return found;
}

function quoted({ words, at, where }) {
  if (!at) return el("section", {}, el("blockquote", { dir: "auto" }, words), where && el("p.quiet", {}, where));
  const pages = at.pages?.length > 1 ? `pages ${at.pages[0]}–${at.pages.at(-1)}` : at.page ? `page ${at.page}` : "";
  const place = [at.collection && `collection ${at.collection}`, pages].filter(Boolean).join(", ");
  const found = el("div", { role: "status" });
  const look = (what) => async () => {
    fill(found, el("p.quiet", {}, "Loading …"));
    try {
      fill(found, await what(at));
    } catch (error) {
      fill(found, el("p.problem", {}, errorText(error)));
    }
  };
  const ways = el("div.row.needs-agent");
  const behind = partIn("citations");
  if (behind) attempt(ways, async () => fill(ways, (await behind.load()).waysTo(at).map(([word, what]) => button(word, look(what)))));
  return el("section", {}, el("blockquote", { dir: "auto" }, words), el("p.quiet", {}, place), behind && ways, found);
}

/** A link to a source on the web. */
function outside(source) {
  const href = source.url && safeUrl(source.url);
  if (!href || /\/v1\/documents\/[^/]+\/file$/.test(new URL(href).pathname)) return null;
  return el("p", {}, link(href, "Open the source"));
}
