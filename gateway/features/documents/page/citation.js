/** What is behind a citation: the passage around the quoted words, the file, and whether they are still proven. */

import { get, request } from "../api.js";
import { el, icon } from "../dom.js";
import { addStyle } from "../parts.js";

await addStyle(import.meta.url, "documents.css");

const SIGNS = { passed: "done", failed: "failed" };

/** The ways to what is behind a citation: pairs of a word and a function that gets the citation and returns what is shown. */
export const waysTo = (at) => [
  at.collection && ["In its passage", showPassage],
  at.collection && [at.page ? `Open page ${at.page}` : "Open the file", showFile],
  at.citation_id && ["Verify again", prove],
].filter(Boolean);

/** The passage with the quoted words marked. Offsets count code points, not JavaScript's UTF-16 units. */
async function showPassage(at) {
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
async function showFile(at) {
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

async function prove(at) {
  const { proof: found } = await get(`v1/citations/${encodeURIComponent(at.citation_id)}/verify`);
  return el("div.proof", {},
    el(`p.${found.verdict}`, {}, found.statement),
    el("ul", {}, found.checks.map(({ check, result, detail }) =>
      el("li", {}, icon(SIGNS[result] ?? "info", result), el("span", {}, el("b", {}, check), ` ${detail}`)))));
}
