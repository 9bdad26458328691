/** What is attached to the next message: pictures go with it; other files are read into a collection that answers search. */

import { errorText, get, request } from "./api.js";
import { button, count, el, fill, icon } from "./dom.js";

const LARGEST_PICTURE = 1_600; // pixels of the longer side that models see
const LONGEST = 900_000; // characters of a picture: a request holds 5 MB
const DEFAULT = "documents";

/** The tray above the message box. Calls `read(collection)` when a file was read into a collection. */
export function attachments({ read }) {
  const chips = el("ul.attached");
  const collection = el("input", { value: DEFAULT, list: "collections", maxLength: 200, "aria-label": "Collection for files" });
  const known = el("datalist", { id: "collections" });
  const target = el("label.into", { hidden: true }, el("span", {}, "Files are read into"), collection, known);
  const warning = el("p.problem", { role: "alert", hidden: true });
  const element = el("div.tray", { hidden: true }, chips, target, warning);
  let pictures = [];

  function draw() {
    element.hidden = !chips.childElementCount;
    target.hidden = !chips.querySelector(".file");
    warning.hidden = true;
  }

  function chip(name, kind, ...inner) {
    const state = el("span.quiet", { role: "status" });
    const item = el(`li.${kind}`, {}, ...inner, el("span.cut", {}, name), state);
    chips.append(item);
    const away = button("", () => {
      pictures = pictures.filter((one) => one.item !== item);
      item.remove();
      draw();
    }, { kind: "plain", picture: "close", title: `Remove ${name}` });
    away.setAttribute("aria-label", `Remove ${name}`);
    item.append(away);
    draw();
    return { item, state };
  }

  async function addPicture(file) {
    const { item, state } = chip(file.name, "picture");
    try {
      const url = await shrink(file);
      item.prepend(el("img", { src: url, alt: "" }));
      pictures.push({ item, url });
    } catch {
      state.textContent = "cannot be shown";
    }
  }

  async function addFile(file) {
    get("v1/collections").then(({ data }) => fill(known, data.map((one) => el("option", { value: one.name }))), () => {});
    const { state } = chip(file.name, "file", icon("folder"));
    const into = collection.value.trim() || DEFAULT;
    state.textContent = "reading …";
    try {
      const form = new FormData();
      form.set("file", file);
      form.set("collection", into);
      const found = await (await request("v1/documents", { method: "POST", body: form })).json();
      const lacks = found.coverage && found.coverage.share < 0.995 ? `, ${Math.floor(found.coverage.share * 100)} % of its text` : "";
      state.textContent = found.unchanged ? `already in ${into}` : `${count(found.passages, "passage")} in ${into}${lacks}`;
      read(into);
    } catch (error) {
      state.textContent = errorText(error);
      state.className = "problem";
    }
  }

  return {
    element,
    add: (files) => files.forEach((file) => (/^image\/(png|jpe?g|webp|gif)$/.test(file.type) ? addPicture(file) : addFile(file))),
    get pictures() {
      return pictures.map((one) => one.url);
    },
    /** Says why what is attached cannot be sent. */
    warn(text) {
      warning.textContent = text;
      warning.hidden = false;
    },
    /** Empties the tray and returns its pictures. */
    take() {
      const taken = pictures.map((one) => one.url);
      pictures = [];
      chips.replaceChildren();
      draw();
      return taken;
    },
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
