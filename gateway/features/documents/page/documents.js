/** Documents: collections, files that are dropped into them, what was read of each and what was not, and its passages. */

import { may } from "../access.js";
import { alarm } from "../answer.js";
import { errorText, get, send } from "../api.js";
import { isOwnCollection, ownCollection } from "../conversation.js";
import { button, confirming, count, el, fill, icon, moment, takeDrops } from "../dom.js";
import { addStyle, hasView } from "../parts.js";
import { entitle } from "../title.js";
import { askAbout } from "./ask.js";
import { readAgain, readings } from "./jobs.js";
import { pipelineForm } from "./pipeline_form.js";
import { extentOf, uploader } from "./uploader.js";

await addStyle(import.meta.url, "documents.css");

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
takeDrops(stage, () => stage.querySelector(".drop"), (files) => stage.querySelector(".upload")?.take(files));

export async function show(collection = "", documentId = "") {
  const look = (looks += 1);
  const here = address(collection, documentId);
  [shown, place] = [collection, here];
  view.classList.toggle("chosen", Boolean(collection));
  may("ingest").then((is) => (adding.hidden = !is));
  const rows = await refresh();
  const again = () => here === place && show(collection, documentId);
  const inner = await inside(collection, documentId, rows, again).catch((error) => [back("#/documents", "All collections"), alarm(errorText(error))]);
  if (look !== looks) return; // another place was opened meanwhile
  fill(stage, page(inner));
  entitle("documents", collection && stage.querySelector("h1")?.textContent);
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
    el("p.lead", {}, "Answers cite the passages they are based on. The documents of a collection are searched together."),
    el("label", {}, "Collection", name, el("datalist", { id: "known-collections" }, rows.map((one) => el("option", { value: one.name })))),
    adder({ target: () => name.value.trim() || "documents", ended: refresh }),
    hasView("build") && el("p.quiet", {}, "A folder, a site or a Drive is read as a whole in ", el("a", { href: "#/build" }, "Build"), "."),
  ];
}

/** The same for a key that adds nothing. */
const reading = (rows) => [
  el("h1", {}, "Documents"),
  el("p.lead", {}, rows.length ? "Choose a collection to see what was read of its files, and to ask about them." : "Nothing has been added yet."),
  el("p.quiet", {}, "To add files, a key needs the scope “ingest”. Ask for one where you got this key."),
];

/** A place to drop files, in this view. */
const adder = (options) => uploader({ ...options, nameOf, look: (read) => address(read.collection, read.document_id) });

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
      : button("Ask about them", () => askAbout(collection), { kind: "primary", picture: "send" }),
      mayChange && readAgain(detail, again),
      mayChange && deleting("Delete the collection", () => send("DELETE", path), "#/documents")),
    mayChange && adder({ collection, target: () => collection, ended: again }),
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
    el("span.quiet.cut", { title: one.name }, one.name !== one.title && one.title && [el("bdi", {}, one.name), " · "], extentOf(one)), bar(one.coverage)));
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
    el("header", {}, el("h1", { dir: "auto" }, found.title || found.name), el("p.facts", {}, found.name !== found.title && el("bdi", {}, found.name), el("span", {}, extentOf(found)), el("span", {}, `read ${moment(found.read_at)}`))),
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
