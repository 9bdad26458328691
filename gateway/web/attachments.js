/** What is attached: pictures go with the next message; other files are read into a collection, that of the chat as a rule. */

import { errorText, get, send } from "./api.js";
import { isOwnCollection } from "./conversation.js";
import { button, count, el, fill, icon } from "./dom.js";
import { upload } from "./upload.js";

const LARGEST_PICTURE = 1_600; // pixels of the longer side that models see
const LONGEST = 900_000; // characters of a picture: a request holds 5 MB

/** The tray above the message box. `filesOf()` returns of the chat that is shown `own()`, which returns the collection of its
 * files, and `read(collection)` and `free(collection)`, which are called when a file was read into one, and when the chat's
 * own one has none any more: another chat may be shown by then. */
export function attachments({ filesOf }) {
  const chips = el("ul.attached");
  const collection = el("input", { placeholder: "this chat", list: "collections", maxLength: 200, "aria-label": "Collection for files" });
  const known = el("datalist", { id: "collections" });
  const target = el("label.into", { hidden: true }, el("span", {}, "Files are read into"), collection, known);
  const warning = el("p.problem", { role: "alert", hidden: true });
  const limited = el("div.into", { hidden: true });
  const element = el("div.tray", { hidden: true }, limited, chips, target, warning);
  let pictures = [];
  let fills = 0; // one more for each chat that is shown
  const reading = new Map(); // item of a file -> promise of what was read, `{ into, id, isNew }`; null if it was not
  const preparing = new Map(); // item of a picture -> promise of whether it can be sent

  function draw() {
    element.hidden = !chips.childElementCount && limited.hidden;
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

  /** Removes a file from the collection of its chat, and an empty one with it: it would leave the chat without answers. */
  async function remove({ into, id, free }) {
    const isAbsent = (error) => {
      if (error.status !== 404) throw error;
    };
    await send("DELETE", `v1/documents/${encodeURIComponent(id)}?collection=${into}`).catch(isAbsent);
    const { data } = (await get(`v1/documents?collection=${into}&limit=1`).catch(isAbsent)) ?? { data: [] };
    if (data.length) return;
    try {
      await send("DELETE", `v1/collections/${into}`).catch(isAbsent);
    } catch (error) {
      if (error.status === 409) return; // another file is being read into it
      throw error;
    }
    await free(into).catch(isAbsent);
  }

  function addPicture(file) {
    const { item, state } = chip(file.name, "picture");
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
    reading.set(item, readFile(file, state, filesOf()));
  }

  /** Reads a file into a collection, and says so beside its name. Returns what was added; null if it was not read. */
  async function readFile(file, state, { own, read, free }) {
    get("v1/collections").then(({ data }) => fill(known, data.map((one) => el("option", { value: one.name }))), () => {});
    state.textContent = "reading …";
    const chosen = collection.value.trim();
    try {
      const into = chosen || await own();
      const place = chosen ? `in ${into}` : "in this chat";
      const found = await upload(file, into);
      const lacks = found.coverage && found.coverage.share < 0.995 ? `, ${Math.floor(found.coverage.share * 100)} % of its text` : "";
      await read(into).catch(async (error) => {
        if (error.status === 404 && !chosen) await send("DELETE", `v1/collections/${into}`); // its chat was deleted meanwhile
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

  return {
    element,
    add: (files) => files.forEach((file) => (/^image\/(png|jpe?g|webp|gif)$/.test(file.type) ? addPicture(file) : addFile(file))),
    /** Whether a picture is attached. */
    get hasPictures() {
      return pictures.length > 0 || preparing.size > 0;
    },
    /** Says that answers come from `what` only, with a button that ends it by `free()`; not without a collection. */
    limit(collection, what = "", free = null) {
      limited.hidden = !collection;
      if (collection) fill(limited, el("span", {}, "Answers come from ", el("a", { href: `#/documents/${encodeURIComponent(collection)}` }, what)),
        button("Use all documents", free, { kind: "plain" }));
      draw();
    },
    /** Waits for the pictures to be made ready. Returns whether all can be sent, and else says why not: one cannot be read, or
     * there are pictures and `obstacle()` returns what is against them. False too if another chat is shown by then. */
    async prepared(obstacle) {
      const filled = fills;
      const areRead = (await Promise.all(preparing.values())).every(Boolean);
      if (filled !== fills) return false;
      const reason = areRead ? pictures.length > 0 && obstacle() : "Not sent: a picture cannot be read. Remove it, or attach another one.";
      if (reason) warning.textContent = reason;
      warning.hidden = !reason;
      return !reason;
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
        for (const all of [reading, preparing]) all.clear();
        collection.value = ""; // another chat's files are not for the same place
        fills += 1;
      }
      chips.replaceChildren(...[...chips.children].filter((item) => reading.has(item)));
      draw();
      return taken;
    },
    /** Waits for the files to be read. Returns whether all were; one that was not stays, with the reason. */
    async settled() {
      const all = [...reading];
      const ends = await Promise.all(all.map(([, end]) => end));
      for (const [at, [item]] of all.entries())
        if (ends[at] && reading.delete(item)) item.remove();
      draw();
      return ends.every(Boolean);
    },
    /** Puts back pictures that were taken: they could not be sent. */
    giveBack: (taken) => taken.forEach(({ url, name }) => keep(chip(name, "picture").item, url, name)),
  };
}

/** Returns a picture as a data address, no larger than models look at: a photograph has 20 MB. */
async function shrink(file) {
  const bitmap = await createImageBitmap(file);
  const scale = Math.min(1, LARGEST_PICTURE / Math.max(bitmap.width, bitmap.height));
  const canvas = el("canvas", { width: Math.max(1, Math.round(bitmap.width * scale)), height: Math.max(1, Math.round(bitmap.height * scale)) });
  canvas.getContext("2d").drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  const whole = file.type === "image/png" ? canvas.toDataURL("image/png") : "";
  return whole && whole.length < LONGEST ? whole : canvas.toDataURL("image/jpeg", 0.86); // drawings stay sharp
}
