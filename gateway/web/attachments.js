/** What is attached: pictures go with the next message; other files are read into a collection, that of the chat as a rule. */

import { may } from "./access.js";
import { errorText } from "./api.js";
import { isOwnCollection } from "./conversation.js";
import { button, count, el, fill, icon, moveFocus } from "./dom.js";
import { partIn } from "./parts.js";
import { fitTogether, shrink } from "./pictures.js";

const TOO_LARGE = "Not sent: these pictures are too large for one message. Remove some of them.";
const NO_FILES = "This gateway reads no files that are attached. Pictures can be attached.";
const NO_RIGHT = "Files need a key with the scope “ingest”, which this one does not have. Pictures can be attached.";

const files = partIn("attachments"); // the feature that reads files, if one does

/** What tells files apart: a changed one is another. */
const nameOf = ({ name, size, lastModified }) => `${name} ${size} ${lastModified}`;

/** The tray above the message box. `filesOf()` returns of the chat that is shown the `chat` itself, `own()`, which returns the
 * collection of its files, and `read(collection, room)` and `free(collection)`, which are called when a file was read into one, from
 * which the room answers, and when the chat's own one has none any more: another chat may be shown by then. */
export function attachments({ filesOf }) {
  const chips = el("ul.attached");
  const collection = el("input", { placeholder: "this chat", list: "collections", maxLength: 200, "aria-label": "Collection for files" });
  const known = el("datalist", { id: "collections" });
  const target = el("label.into", { hidden: true }, el("span", {}, "Files are read into"), collection, known);
  const warning = el("p.problem", { role: "alert", hidden: true });
  const limited = el("div.into", { hidden: true });
  const elsewhere = el("ul.elsewhere"); // files that were not read, of chats that are not shown
  const element = el("div.tray", { hidden: true }, elsewhere, limited, chips, target, warning);
  let pictures = [];
  let fills = 0; // one more for each chat that is shown
  const reading = new Map(); // item of a file -> promise of what was read, `{ into, id, isNew }`; null if it was not
  const chatOf = new WeakMap(); // item of a file -> its chat
  let left = []; // items of files whose chat is not shown, with their promises
  const preparing = new Map(); // item of a picture -> promise of whether it can be sent

  function draw() {
    element.hidden = !chips.childElementCount && !elsewhere.childElementCount && limited.hidden;
    target.hidden = !chips.querySelector(".file");
    warning.hidden = true;
  }

  function chip(name, kind, ...inner) {
    const state = el("span.quiet", { role: "status" });
    const item = el(`li.${kind}`, {}, ...inner, el("span.cut", {}, name), state);
    chips.append(item);
    const away = button("", async () => {
      pictures = pictures.filter((one) => one.item !== item);
      await takeBack(item, state);
      reading.delete(item);
      preparing.delete(item);
      moveFocus(item, (item.nextSibling ?? item.previousSibling)?.querySelector("button:last-child") ?? element.nextElementSibling);
      item.remove();
      draw();
    }, { kind: "plain", picture: "close", title: `Remove ${name}` });
    away.setAttribute("aria-label", `Remove ${name}`);
    item.append(away);
    draw();
    return { item, state };
  }

  /** Deletes what was read of a file into the collection of its chat; what others may search stays in theirs. */
  async function takeBack(item, state) {
    if (!reading.has(item)) return;
    const before = state.textContent;
    state.textContent = "removing …";
    try {
      const added = await reading.get(item);
      if (added?.isNew && isOwnCollection(added.into)) await remove(added);
    } catch (error) {
      state.textContent = before;
      throw error;
    }
  }

  /** Removes a file; a chat whose collection has none any more is answered from all documents again. */
  async function remove({ into, id, free }) {
    const isGone = await (await files.load()).remove(id, into);
    if (isGone) await free(into).catch((error) => {
      if (error.status !== 404) throw error;
    });
  }

  /** Whether a file is attached that is the same by all that the browser says of it: it was dropped once more. */
  const isAttached = (file) => [...chips.children].some((item) => item.dataset.file === nameOf(file));

  function addPicture(file) {
    const { item, state } = chip(file.name, "picture");
    item.dataset.file = nameOf(file);
    preparing.set(item, prepare(item, state, file));
  }

  /** Makes a picture as small as a message holds. Returns whether it can be sent. */
  async function prepare(item, state, file) {
    state.textContent = "making it smaller …";
    try {
      const url = await shrink(file);
      if (preparing.delete(item)) keep(item, url, file.name); // else it was removed, or another chat is shown
      state.textContent = "";
      return true;
    } catch {
      state.textContent = "the browser cannot read it";
      state.className = "problem";
      return false;
    }
  }

  function keep(item, url, name) {
    item.prepend(el("img", { src: url, alt: "" }));
    pictures.push({ item, url, name });
  }

  function addFile(file) {
    const { item, state } = chip(file.name, "file", icon("folder"));
    item.dataset.file = nameOf(file);
    const its = filesOf();
    chatOf.set(item, its.chat);
    const again = button("Try again", () => read(), { kind: "plain", picture: "again" });
    const read = () => {
      if (again.isConnected) item.lastChild.focus(); // before the button takes it away
      again.remove();
      reading.set(item, readFile(file, state, its).then((added) => {
        if (added) return added;
        state.after(again);
        if (left.some(([one]) => one === item)) reportElsewhere(file.name, state.textContent, its.chat);
        return null;
      }));
    };
    read();
  }

  /** Says what became of a file that a person attached before they went to another chat. */
  function reportElsewhere(name, problem, chat) {
    const away = button("", () => (line.remove(), draw()), { kind: "plain", picture: "close", title: "Remove this line" });
    away.setAttribute("aria-label", away.title);
    const line = el("li", { role: "alert" }, el("span.problem", {}, `${name} was not read: ${problem} `),
      chat.id && el("a", { href: `#/chat/${encodeURIComponent(chat.id)}` }, "Go to its chat"), away);
    line.dataset.chat = chat.id;
    elsewhere.append(line);
    draw();
  }

  /** Reads a file into a collection, and says so beside its name. Returns what was added; null if it was not read. */
  async function readFile(file, state, { own, read, free }) {
    [state.textContent, state.className] = ["reading …", "quiet"];
    const chosen = collection.value.trim();
    try {
      const reader = await files.load();
      reader.listCollections().then((names) => fill(known, names.map((value) => el("option", { value }))), () => {});
      const into = chosen || await own();
      const place = chosen ? `in ${into}` : "in this chat";
      const held = (is) => (state.textContent = is ? "waiting for the key’s limit of requests a minute …" : "reading …");
      const found = await reader.read(file, into, { held });
      const lacks = found.coverage && found.coverage.share < 0.995 ? `, ${Math.floor(found.coverage.share * 100)} % of its text` : "";
      await read(into, reader.room).catch(async (error) => {
        if (error.status === 404 && !chosen) await reader.removeCollection(into); // its chat was deleted meanwhile
        throw error;
      });
      state.textContent = found.unchanged ? `already ${place}` : `${count(found.passages, "passage")} ${place}${lacks}`;
      return { into, id: found.document_id, isNew: !found.unchanged, free };
    } catch (error) {
      state.textContent = errorText(error);
      state.className = "problem";
      return null;
    }
  }

  /** Attaches pictures, and other files if the key may add some. */
  async function add(given) {
    const isPicture = ({ type }) => /^image\/(png|jpe?g|webp|gif)$/.test(type);
    const mayAdd = given.every(isPicture) || (files && await may("ingest"));
    for (const file of given.filter((one) => !isAttached(one)))
      if (isPicture(file)) addPicture(file);
      else if (mayAdd) addFile(file);
    if (!mayAdd) warn(files ? NO_RIGHT : NO_FILES);
  }

  function warn(text) {
    element.hidden = false;
    warning.textContent = text;
    warning.hidden = !text;
  }

  return {
    element, add,
    /** Whether a picture is attached. */
    get hasPictures() {
      return pictures.length > 0 || preparing.size > 0;
    },
    /** Says that answers come from `what` only, with a link to its `place` and a button that ends it by `free()`; not without a
     * collection. One that `isGone` has none for this chat. */
    limit(collection, what = "", free = null, { place = "", isGone = false } = {}) {
      limited.hidden = !collection;
      const from = isGone ? el("span.problem", { role: "alert" }, `This chat is answered from ${what} only, which were deleted.`)
        : el("span", {}, "Answers come from ", place ? el("a", { href: place }, what) : what);
      if (collection) fill(limited, from, button("Use all documents", free, { kind: "plain" }));
      draw();
    },
    /** Waits for the pictures to be made ready. Returns whether all can be sent, and else says why not: one cannot be read, or
     * there are pictures and `obstacle()` returns what is against them. False too if another chat is shown by then. */
    async prepared(obstacle) {
      const filled = fills;
      const areRead = (await Promise.all(preparing.values())).every(Boolean);
      if (filled !== fills) return false;
      const reason = areRead ? pictures.length > 0 && obstacle() : "Not sent: a picture cannot be read. Remove it, or attach another one.";
      const problem = reason || (pictures.length > 0 && !(await fitTogether(pictures)) && TOO_LARGE);
      if (filled !== fills) return false;
      if (problem) warn(problem);
      warning.hidden = !problem;
      return !problem;
    },
    /** Whether a file is being read, or was not read. */
    get holdsFiles() {
      return reading.size > 0;
    },
    /** Empties the tray and returns its pictures, each with its `url` and its `name`. With `keepsFiles` the files stay. */
    take({ keepsFiles = false } = {}) {
      const taken = pictures;
      pictures = [];
      if (!keepsFiles) {
        left.push(...reading);
        for (const all of [reading, preparing]) all.clear();
        collection.value = ""; // another chat's files are not for the same place
        fills += 1;
      }
      chips.replaceChildren(...[...chips.children].filter((item) => reading.has(item)));
      draw();
      return taken;
    },
    /** Shows the files of a chat again that is opened once more; those of none are of the new chat, whose id is "". */
    bringBack(chat) {
      const isIts = ([item]) => chatOf.get(item).id === chat && !chatOf.get(item).begun;
      const its = left.filter(isIts);
      left = left.filter((one) => !isIts(one));
      for (const line of [...elsewhere.children]) if (line.dataset.chat === chat) line.remove(); // it is said beside its file
      for (const [item, end] of its) {
        reading.set(item, end);
        chips.append(item);
      }
      draw();
    },
    /** Waits for the files to be read. Returns whether all were; one that was not stays, with the reason. */
    async settled() {
      const all = [...reading];
      const ends = await Promise.all(all.map(([, end]) => end));
      for (const [at, [item]] of all.entries())
        if (ends[at]) {
          reading.delete(item);
          left = left.filter(([one]) => one !== item); // sent with a message, by now of a chat that is not shown
          item.remove();
        }
      draw();
      return ends.every(Boolean);
    },
    /** Puts back pictures that were taken: they could not be sent. */
    giveBack: (taken) => taken.forEach(({ url, name }) => keep(chip(name, "picture").item, url, name)),
  };
}
