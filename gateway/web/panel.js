/** The panel of a citation: the quoted words, their place, the passage around them, and the file. */

import { get, request, errorText } from "./api.js";
import { button, el, fill, icon } from "./dom.js";
import { link, safeUrl } from "./html.js";

const panel = document.getElementById("panel");
let opener = null;

const SIGNS = { passed: "done", failed: "failed" };

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
  return el("section", {},
    el("blockquote", { dir: "auto" }, words),
    el("p.quiet", {}, place),
    el("div.row.needs-agent", {},
      at.collection && button("In its passage", look(passage)),
      at.collection && button(at.page ? `Open page ${at.page}` : "Open the file", look(file)),
      at.citation_id && button("Verify again", look(proof))),
    found);
}

/** The passage with the quoted words marked. Offsets count code points, not JavaScript's UTF-16 units. */
async function passage(at) {
  const path = `v1/documents/${encodeURIComponent(at.source_id)}?collection=${encodeURIComponent(at.collection)}`;
  const { chunks, coverage, uncertainties } = await get(path);
  const chunk = chunks.find((one) => one.chunk_id === at.chunk_id);
  if (!chunk) return el("p.problem", {}, "The document has been read again since; this passage no longer exists.");
  const letters = Array.from(chunk.text);
  const end = at.offset + Array.from(at.text_snippet).length;
  const cut = (from, to) => letters.slice(from, to).join("");
  return el("div.passage", {}, el("h3", { dir: "auto" }, [...new Set(chunk.title.split(" / "))].join(" / ") || "Passage"),
    el("p", { dir: "auto" }, cut(0, at.offset), el("mark", {}, cut(at.offset, end)), cut(end)),
    reading(coverage, uncertainties));
}

/** How much of the file was read, what is missing, and what was left out on purpose. */
function reading(coverage, uncertainties = []) {
  const omitted = Object.entries(coverage?.omitted ?? {}).map(([kind, count]) => `${kind} (${count})`);
  const lines = [
    coverage && `${Math.floor(coverage.share * 1000) / 10} % of the file's ${coverage.unit} were read.`,
    omitted.length && `Left out on purpose: ${omitted.join(", ")}.`,
    ...uncertainties,
  ].filter(Boolean);
  return lines.length ? el("ul.quiet", {}, lines.map((line) => el("li", {}, line))) : null;
}

/** Opens the file. It is fetched because a link cannot carry the key. PDFs are shown, other files are saved. */
async function file(at) {
  const path = `v1/documents/${encodeURIComponent(at.source_id)}/file?collection=${encodeURIComponent(at.collection)}`;
  const response = await request(path, { accept: "*/*" });
  const isPdf = response.headers.get("content-type")?.startsWith("application/pdf");
  const bytes = await response.blob();
  const blob = URL.createObjectURL(new Blob([bytes], { type: isPdf ? "application/pdf" : "application/octet-stream" }));
  const opened = isPdf ? { href: at.page ? `${blob}#page=${at.page}` : blob, target: "_blank", rel: "noopener" } : {
    href: blob, download: at.source.split("/").at(-1) || "document" };
  setTimeout(() => URL.revokeObjectURL(blob), 600_000); // time enough for a slow reader to take it over
  const open = el("a", opened, isPdf ? "Open the PDF" : `Save ${opened.download}`);
  open.click();
  return el("p", {}, open);
}

async function proof(at) {
  const { proof: found } = await get(`v1/citations/${encodeURIComponent(at.citation_id)}/verify`);
  return el("div.proof", {},
    el(`p.${found.verdict}`, {}, found.statement),
    el("ul", {}, found.checks.map(({ check, result, detail }) =>
      el("li", {}, icon(SIGNS[result] ?? "info", result), el("span", {}, el("b", {}, check), ` ${detail}`)))));
}

/** A link to a source on the web. */
function outside(source) {
  const href = source.url && safeUrl(source.url);
  if (!href || /\/v1\/documents\/[^/]+\/file$/.test(new URL(href).pathname)) return null;
  return el("p", {}, link(href, "Open the source"));
}
