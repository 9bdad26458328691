/** Files that are dropped into collections: each with what was read of it. They are kept as long as the page is open: a view
 * that is left, or drawn again, takes nothing with it of what failed. */

import { errorText } from "../api.js";
import { button, count, el, icon } from "../dom.js";
import { upload } from "./upload.js";

let uploads = []; // { file, collection, state, isRead, isFailed, read }, in their order
let places = []; // where they are drawn: the one that is shown, and one that may be shown next

const isOpen = (one) => !one.isRead && !one.isFailed;
const drawAll = (one) => places.forEach((place) => place.draw(one));

/** A place to drop files, with those that were dropped into `collection` before, or into any without one. `target()` returns
 * where new ones go, `look(one)` the address of a document that was read, and `nameOf(collection)` what a person calls it.
 * Calls `ended()` once all files of the collection are read. */
export function uploader({ collection = "", target, look, nameOf, ended }) {
  const reports = el("ul.cardlist");
  const progress = el("p.quiet", { role: "status" });
  const rows = new Map(); // upload -> its row
  const chosen = el("input", { type: "file", multiple: true, hidden: true, onchange: () => take(chosen.files) });
  const box = el("button.drop", { type: "button", onclick: () => chosen.click() }, icon("save"), el("span", {}, "Drop files or folders here, or press to choose files"), el("span.small", {}, "PDF, Word, Excel, PowerPoint, HTML, Markdown, mail, pictures and more"));
  const isHere = (one) => !collection || one.collection === collection;

  /** Says how far it is: with many files, what failed is out of sight; a screen reader reads out the end of one. */
  function drawProgress() {
    const here = uploads.filter(isHere);
    const [read, failed] = [here.filter((one) => one.isRead).length, here.filter((one) => one.isFailed).length];
    const parts = [read + failed < here.length ? `${read} of ${count(here.length, "file")} read` : read > 0 && `${count(read, "file")} read`,
      failed > 0 && `${read > 0 ? failed : count(failed, "file")} could not be read`];
    const line = parts.filter(Boolean).join(" · ");
    if (progress.textContent !== line) progress.textContent = line;
  }

  function draw(one) {
    if (!isHere(one)) return;
    if (!uploads.includes(one)) return rows.get(one)?.remove(), drawProgress();
    const [row, before] = [rowOf(one), rows.get(one)];
    if (before) before.replaceWith(row);
    else reports.append(row);
    rows.set(one, row);
    drawProgress();
  }

  function rowOf(one) {
    const where = !collection && one.collection !== target() ? ` · ${nameOf(one.collection)}` : "";
    return el("li.cardrow", {},
      el("div", {}, el("b.cut", { title: one.file.name }, el("bdi", {}, one.file.name)), el(one.isFailed ? "span.problem" : "span.quiet", {}, one.state, where)),
      one.isRead && el("a.button", { href: look(one.read) }, "Look"),
      one.read?.note && el("span.quiet", {}, one.read.note),
      one.isFailed && el("div.row", {}, button("Try again", () => again(one), { picture: "again" }), forgetting(one)));
  }

  function forgetting(one) {
    const press = button("", () => {
      uploads = uploads.filter((other) => other !== one);
      drawAll(one);
    }, { kind: "plain", picture: "close", title: `Take ${one.file.name} off this list` });
    press.setAttribute("aria-label", press.title);
    return press;
  }

  function again(one) {
    Object.assign(one, { isFailed: false, state: "waiting" });
    readAll([one]);
  }

  function take(files) {
    const before = uploads.filter(isHere);
    if (!before.some(isOpen)) { // others are counted from now on
      uploads = uploads.filter((one) => !isHere(one) || one.isFailed);
      before.forEach(drawAll);
    }
    const into = target();
    const added = [...files].map((file) => ({ file, collection: into, state: "waiting", isRead: false, isFailed: false, read: null }));
    chosen.value = "";
    uploads.push(...added);
    readAll(added);
  }

  // What was read before is listed with its collection; only what was said of it stays here.
  for (const one of uploads) if (!one.isRead || one.read.note) draw(one);
  drawProgress();
  const element = el("div.upload", {}, box, chosen, progress, reports);
  places = [...places.filter((place) => place.element.isConnected), { element, draw, isHere, ended }];
  return Object.assign(element, { take });
}

/** Reads files one after another, as the gateway does anyway. Each is drawn where files of its collection are shown by then. */
async function readAll(added) {
  const show = (one, changes) => {
    Object.assign(one, changes);
    drawAll(one);
  };
  for (const one of added) show(one, {});
  await Promise.all(added.map(async (one) => {
    const reading = () => show(one, { state: "reading …" });
    const held = (is) => (is ? show(one, { state: "waiting for the key’s limit of requests a minute …" }) : reading());
    try {
      const read = await upload(one.file, one.collection, { begun: reading, held });
      show(one, { isRead: true, read, state: read.unchanged ? "The collection has this file already." : extentOf(read) });
    } catch (error) {
      show(one, { isFailed: true, state: errorText(error) });
    }
  }));
  const together = uploads.filter((one) => one.collection === added[0]?.collection);
  if (together.some(isOpen) || !together.some((one) => one.isRead)) return; // their rows must stay; there is nothing new
  for (const place of places) if (place.element.isConnected && added.some(place.isHere)) place.ended();
}

/** How much of a file was read, in words. */
export function extentOf({ passages, pages, coverage, uncertainties = [] }) {
  const share = coverage ? `${Math.floor(coverage.share * 1000) / 10} % of its ${coverage.unit} read` : "";
  return [count(passages, "passage"), pages > 1 && count(pages, "page"), share, uncertainties.length && count(uncertainties.length, "doubt")].filter(Boolean).join(" · ");
}
