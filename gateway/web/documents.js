/** Documents: collections, files that are dropped into them, what was read of each and what was not, and its passages. */

import { alarm } from "./answer.js";
import { errorText, get, send } from "./api.js";
import { may } from "./access.js";
import { readAgain, readings } from "./document_jobs.js";
import { pipelineForm } from "./document_pipeline.js";
import { isOwnCollection, ownCollection } from "./conversation.js";
import { button, confirming, count, el, fill, icon, moment, takeDrops } from "./dom.js";
import { upload } from "./upload.js";

const PAGE = 200; // documents that are listed at once
const PAGES_OF_CHATS = 10; // of 200, in which the chats of collections are looked for
const list = el("ul.items");
const stage = el("div.stage");
const adding = el("a.button.plain", { href: "#/documents", title: "Add files", hidden: true }, icon("plus", "Add files"));
export const view = el("section.view.split.both", { "aria-label": "Documents" },
  el("nav.side", { "aria-label": "Collections" },
    el("div.head", {}, el("h2", {}, "Documents"), adding),
    el("div.scroll", {}, list)), stage);

let shown = ""; // the collection that is looked at
let place = ""; // its address, or that of one of its documents
let looks = 0; // one more for each time that a place is shown
let chats = new Map(); // collection -> the chat whose files it holds
let lead = () => {};
takeDrops(stage, () => stage.querySelector(".drop"), (files) => stage.querySelector(".upload")?.take(files));

/** The target of "Ask about them". */
export const leadTo = (go) => (lead = go);

export async function show(collection = "", documentId = "") {
  const look = (looks += 1);
  const here = address(collection, documentId);
  [shown, place] = [collection, here];
  view.classList.toggle("chosen", Boolean(collection));
  may("ingest").then((is) => (adding.hidden = !is));
  const rows = await refresh();
  const again = () => here === place && show(collection, documentId);
  const inner = await inside(collection, documentId, rows, again).catch((error) => [back("#/documents", "All collections"), alarm(errorText(error))]);
  if (look === looks) fill(stage, page(inner)); // else another place was opened meanwhile
}

/** What is at a place; `again()` shows it anew, unless another one is shown by then. */
async function inside(collection, documentId, rows, again) {
  if (!collection) return (await may("ingest")) ? start(rows) : reading(rows);
  return documentId ? document_(collection, documentId) : files(collection, again);
}

const page = (...inner) => el("div.scroll", {}, el("div.column.run", {}, inner));
const back = (href, words) => el("a.back.always", { href }, words);
const address = (...parts) => `#/documents/${parts.map(encodeURIComponent).join("/")}`;

async function refresh() {
  try {
    const { data } = await get("v1/collections");
    const [ofChats, common] = [data.filter(isOfChat), data.filter((one) => !isOfChat(one))];
    if (ofChats.length) chats = await findChats(new Set(ofChats.map((one) => one.name)));
    const row = (one) => el("li", {}, el("a.item", { href: address(one.name), "aria-current": one.name === shown ? "page" : null },
      el("b.cut", {}, nameOf(one.name)), el("span.quiet.cut", {}, `${count(one.documents, "document")} · ${one.status}`)));
    fill(list, common.map(row), !common.length && el("li.quiet.pad", {}, "No collection yet."),
      ofChats.length > 0 && el("li.pad", {}, el("h3", {}, "Attached to chats")), ofChats.map(row));
    return common;
  } catch (error) {
    fill(list, el("li.problem.pad", { role: "alert" }, errorText(error)));
    return [];
  }
}

const isOfChat = ({ name }) => isOwnCollection(name);
const nameOf = (collection) => chats.get(collection)?.title || collection;

/** The chats of these collections, as far as they are among the newest. */
async function findChats(collections) {
  const chats = new Map();
  let before = "";
  for (let pages = 0; pages < PAGES_OF_CHATS && before !== null && chats.size < collections.size; pages += 1) {
    const { data, next } = await get(`v1/conversations?limit=200${before && `&before=${encodeURIComponent(before)}`}`).catch(() => ({ data: [], next: null }));
    for (const one of data) if (collections.has(ownCollection(one.id))) chats.set(ownCollection(one.id), one);
    before = next;
  }
  return chats;
}

/** What one does first: files into a collection. */
function start(rows) {
  const name = el("input", { value: rows[0]?.name ?? "documents", list: "known-collections", maxLength: 200, required: true });
  return [
    el("h1", {}, "Add documents"),
    el("p.lead", {}, "Answers cite the passages they rest on. A collection is what is searched together."),
    el("label", {}, "Collection", name, el("datalist", { id: "known-collections" }, rows.map((one) => el("option", { value: one.name })))),
    uploader(() => name.value.trim() || "documents"),
    el("p.quiet", {}, "A folder, a site or a Drive is read as a whole in ", el("a", { href: "#/build" }, "Build"), "."),
  ];
}

/** The same for a key that adds nothing. */
const reading = (rows) => [
  el("h1", {}, "Documents"),
  el("p.lead", {}, rows.length ? "Choose a collection to see what was read of its files, and to ask about them." : "Nothing was added yet."),
  el("p.quiet", {}, "To add files, a key needs the scope “ingest”: whoever gave you this one can make another."),
];

/** A place to drop files; each is shown with what was read of it. */
function uploader(target, done = () => {}) {
  const reports = el("ul.cardlist");
  const progress = el("p.quiet", { role: "status" });
  let [given, read, failed] = [0, 0, 0];
  const chosen = el("input", { type: "file", multiple: true, hidden: true, onchange: () => take(chosen.files) });
  const box = el("button.drop", { type: "button", onclick: () => chosen.click() }, icon("save"), el("span", {}, "Drop files here, or press to choose"), el("span.small", {}, "PDF, Word, Excel, PowerPoint, HTML, Markdown, mail, pictures and more"));

  /** Says how far it is: with many files, what failed is out of sight; a screen reader reads out the end of one. */
  function drawProgress() {
    const left = given - read - failed;
    const parts = [left > 0 ? `${read} of ${count(given, "file")} read` : read > 0 && `${count(read, "file")} read`,
      failed > 0 && `${read > 0 ? failed : count(failed, "file")} could not be read`];
    fill(progress, parts.filter(Boolean).join(" · "));
  }

  /** Reads the files one after another: the gateway reads a file at a time anyway. */
  async function take(files) {
    const collection = target();
    const waiting = [...files].map((file) => {
      const state = el("span.quiet", {}, "waiting");
      const row = el("li.cardrow", {}, el("div", {}, el("b.cut", { title: file.name }, el("bdi", {}, file.name)), state));
      reports.append(row);
      return { file, state, row };
    });
    chosen.value = "";
    given += waiting.length;
    drawProgress();
    for (const { file, state, row } of waiting) {
      state.textContent = "reading …";
      try {
        const found = await upload(file, collection);
        state.textContent = found.unchanged ? "The collection has this file already." : said(found);
        row.append(el("a.button", { href: address(found.collection, found.document_id) }, "Look"));
        if (found.note) row.append(el("span.quiet", {}, found.note));
        read += 1;
      } catch (error) {
        state.textContent = errorText(error);
        state.className = "problem";
        failed += 1;
      }
      drawProgress();
    }
    refresh();
    if (read + failed === given) done(); // else other files are still read, whose rows must stay
  }

  return Object.assign(el("div.upload", {}, box, chosen, progress, reports), { take });
}

/** How much of a file was read, in words. */
function said({ passages, pages, coverage, uncertainties = [] }) {
  const share = coverage ? `${Math.floor(coverage.share * 1000) / 10} % of its ${coverage.unit} read` : "";
  return [count(passages, "passage"), pages > 1 && count(pages, "page"), share, uncertainties.length && count(uncertainties.length, "doubt")].filter(Boolean).join(" · ");
}

async function files(collection, again) {
  const path = `v1/collections/${encodeURIComponent(collection)}`;
  const [detail, mayChange] = await Promise.all([get(path), may("ingest")]);
  const chat = chats.get(collection);
  return [
    back("#/documents", "All collections"),
    el("header", {}, el("h1", {}, nameOf(collection)),
      el("p.facts", {}, el("span", {}, count(detail.documents, "document")), detail.template && el("span", {}, `pipeline ${detail.template}`),
        detail.embedder && el("span", {}, `vectors by ${detail.embedder}`), detail.updated_at && el("span", {}, `changed ${moment(detail.updated_at)}`))),
    el("div.row", {}, chat ? el("a.button.primary", { href: `#/chat/${encodeURIComponent(chat.id)}` }, icon("send"), "Ask in its chat")
      : button("Ask about them", () => lead(collection), { kind: "primary", picture: "send" }),
      mayChange && readAgain(detail, again),
      mayChange && deleting("Delete the collection", () => send("DELETE", path), "#/documents")),
    mayChange && uploader(() => collection, again),
    await readings(collection, again),
    mayChange && await pipelineForm(detail, again),
    el("section", {}, el("h2", {}, "Files"), await listing(collection, detail.documents)),
  ];
}

/** The documents of a collection, page by page. */
async function listing(collection, total) {
  const rows = el("ul.items");
  const row = (one) => el("li", {}, el("a.item.row-of", { href: address(collection, one.document_id) },
    el("b.cut", { dir: "auto" }, one.title || one.name),
    el("span.quiet.cut", { title: one.name }, one.name !== one.title && one.title && [el("bdi", {}, one.name), " · "], said(one)), bar(one.coverage)));
  const load = async () => {
    const offset = rows.childElementCount;
    const { data } = await get(`v1/documents?${new URLSearchParams({ collection, limit: PAGE, offset })}`);
    if (rows.childElementCount !== offset) return; // pressed twice
    rows.append(...data.map(row));
    more.hidden = data.length < PAGE || rows.childElementCount >= total;
    more.lastChild.textContent = `Show more of ${count(total, "document")}`;
  };
  const more = button("Show more", load, { kind: "plain" });
  await load();
  return rows.childElementCount ? [rows, more] : el("p.quiet", {}, "None yet.");
}

/** How much of a file was read, as a bar; nothing where it cannot be counted. */
function bar(coverage) {
  if (!coverage) return null;
  return el("progress.share", { max: 1, value: coverage.share, title: `${Math.floor(coverage.share * 1000) / 10} % read`, "aria-label": "Share that was read" });
}

async function document_(collection, id) {
  const path = `v1/documents/${encodeURIComponent(id)}`;
  const of = `?collection=${encodeURIComponent(collection)}`;
  const [found, mayChange] = await Promise.all([get(path + of), may("ingest")]);
  const omitted = Object.entries(found.coverage?.omitted ?? {}).map(([kind, number]) => `${kind} (${number})`);
  const lacks = [...(found.uncertainties ?? []), omitted.length && `Left out on purpose: ${omitted.join(", ")}`].filter(Boolean);
  const passage = (one) => el("li.passage", {}, el("h3", { dir: "auto" }, (one.title !== found.title && one.title) || "Passage", one.metadata.page && el("span.quiet", {}, ` page ${one.metadata.page}`)), el("p", { dir: "auto" }, one.text));
  const shownPassages = el("ol.passages", {}, found.chunks.slice(0, 50).map(passage));
  const more = found.chunks.length > 50 && button(`Show all ${found.chunks.length}`, (event) => {
    shownPassages.append(...found.chunks.slice(50).map(passage));
    event.currentTarget.remove();
  }, { kind: "plain" });
  return [
    back(address(collection), nameOf(collection)),
    el("header", {}, el("h1", { dir: "auto" }, found.title || found.name), el("p.facts", {}, found.name !== found.title && el("bdi", {}, found.name), el("span", {}, said(found)), el("span", {}, `read ${moment(found.read_at)}`))),
    el("div.row", {}, mayChange && deleting("Delete", () => send("DELETE", path + of), address(collection))),
    lacks.length > 0 && el("section", {}, el("h2", {}, "What was not read, or is doubtful"), el("ul.lines", {}, lacks.map((one) => el("li", {}, one)))),
    el("section", {}, el("h2", {}, count(found.chunks.length, "passage")), shownPassages, more),
  ];
}

/** A button that deletes something, and leads to another address then. */
function deleting(word, action, then) {
  return confirming(word, "Really delete?", async () => {
    await action();
    location.hash = then;
  }, { kind: "plain", picture: "trash" });
}
