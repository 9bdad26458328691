/** Elements and formats shared by all views. Strings become text nodes; nothing here parses HTML. */

import { errorText, Failure } from "./api.js";

const SVG = "http://www.w3.org/2000/svg";
const ICONS = {
  send: "M12 19V5M6 11l6-6 6 6",
  stop: "M7 7h10v10H7z",
  done: "M5 13l4 4 10-11",
  failed: "M6 6l12 12M18 6L6 18",
  waiting: "M12 7v5l3 2M12 3a9 9 0 100 18 9 9 0 000-18z",
  open: "M9 6l6 6-6 6",
  close: "M6 6l12 12M18 6L6 18",
  plus: "M12 5v14M5 12h14",
  key: "M8 11a4 4 0 100 8 4 4 0 000-8zM11 12l9-9M16 7l3 3",
  folder: "M3 7a1 1 0 011-1h5l2 2h8a1 1 0 011 1v9a1 1 0 01-1 1H4a1 1 0 01-1-1z",
  site: "M12 3a9 9 0 100 18 9 9 0 000-18zM3 12h18M12 3c5 6 5 12 0 18M12 3c-5 6-5 12 0 18",
  drive: "M8 4h8l6 10-4 6H6l-4-6zM8 4l6 10h8M16 4l-6 10-4 6",
  warning: "M12 4l9 16H3zM12 10v4M12 17v.5",
  blocked: "M12 3a9 9 0 100 18 9 9 0 000-18zM6 6l12 12",
  info: "M12 3a9 9 0 100 18 9 9 0 000-18zM12 11v6M12 7.5v.5",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  edit: "M4 20l1-4L16 5l3 3L8 19zM14 7l3 3",
  more: "M5 12h.01M12 12h.01M19 12h.01",
  search: "M11 4a7 7 0 100 14 7 7 0 000-14zM16 16l4 4",
  left: "M15 6l-6 6 6 6",
  trash: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
  save: "M12 4v11M7 11l5 5 5-5M5 20h14",
  clip: "M19 11l-7.5 7.5a4.5 4.5 0 01-6.4-6.4L13 4.3a3 3 0 014.2 4.2L9.5 16.2a1.5 1.5 0 01-2.1-2.1L14 7.5",
  sun: "M12 8a4 4 0 100 8 4 4 0 000-8zM12 2v2M12 20v2M4.5 4.5l1.5 1.5M18 18l1.5 1.5M2 12h2M20 12h2M4.5 19.5L6 18M18 6l1.5-1.5",
  moon: "M20 14A8 8 0 1110 4a6.5 6.5 0 0010 10z",
  half: "M12 3a9 9 0 100 18 9 9 0 000-18zM12 3v18M15 5v14M18 7v10",
  plug: "M9 3v5M15 3v5M6 8h12v3a6 6 0 01-12 0zM12 17v4",
  down: "M12 5v14M6 13l6 6 6-6",
  again: "M19 12a7 7 0 11-2-5l2 2M19 4v5h-5",
};

/** `el("p.note", { title: "x", onclick: f }, "text", node, null)`: an element with its children. */
export function el(spec, props = {}, ...children) {
  const [tag, ...classes] = spec.split(".");
  const node = document.createElement(tag || "div");
  if (classes.length) node.className = classes.join(" ");
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name in node && name !== "list" && !name.includes("-")) node[name] = value; // `list` can only be read
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** Replaces the children of a node. */
export function fill(node, ...children) {
  node.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** An icon; `label` is its name for screen readers. */
export function icon(name, label = "") {
  const svg = document.createElementNS(SVG, "svg");
  const path = document.createElementNS(SVG, "path");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("class", `icon icon-${name}`);
  path.setAttribute("d", ICONS[name] ?? "");
  svg.append(path);
  if (label) {
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", label);
  } else svg.setAttribute("aria-hidden", "true");
  return svg;
}

/** A path from one point to another on its right. It bends only within the last `gap`, to pass nodes in between. */
export function curve(x1, y1, x2, y2, gap) {
  const path = document.createElementNS(SVG, "path");
  const turn = Math.max(x1, x2 - gap);
  const middle = (turn + x2) / 2;
  path.setAttribute("d", `M${x1} ${y1}H${turn}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`);
  return path;
}

/** An empty drawing surface. */
export function canvas(className) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", className);
  svg.setAttribute("aria-hidden", "true");
  return svg;
}

/** A button with a text or an icon. What its action fails with is said behind it. Pressed again while its action is at
 * work, it does nothing. */
export function button(word, onclick, { kind = "", picture = null, title = "" } = {}) {
  const look = kind ? `button.button.${kind}` : "button.button";
  let isAtWork = false;
  const work = async (event) => {
    if (isAtWork) return;
    isAtWork = true;
    await attempt(press, () => onclick(event)).finally(() => (isAtWork = false));
  };
  const press = el(look, { type: "button", onclick: work, title }, picture && icon(picture), word && el("span", {}, word));
  return press;
}

/** A button whose action cannot be undone: the first press asks `sure`, the second one acts. The second half of a double
 * click is none, and a button that was left asks again. */
export function confirming(word, sure, action, options = {}) {
  const press = button(word, (event) => {
    if (press.classList.contains("sure")) return event.detail > 1 ? null : action(event);
    ask(true);
  }, options);
  const ask = (is) => {
    press.classList.toggle("sure", is);
    press.lastChild.textContent = is ? sure : word;
  };
  press.addEventListener("blur", () => ask(false));
  return press;
}

/** Leads the focus from a node that is about to go, or from within it, to another one. */
export function moveFocus(from, to) {
  if (!to || !from.contains(document.activeElement)) return;
  if (!to.matches("a, button, input, textarea, select")) to.tabIndex = -1;
  to.focus({ preventScroll: true });
}

/** Awaits an action, and says behind a node what it fails with. */
export async function attempt(node, action) {
  if (node.nextSibling?.isComplaint) node.nextSibling.remove();
  try {
    await action();
  } catch (error) {
    if (error.name === "AbortError") return;
    const complaint = el("p.problem", { role: "alert" }, errorText(error));
    complaint.isComplaint = true;
    node.after(complaint);
    if (!(error instanceof Failure)) throw error; // a fault of this page is for the console too
  }
}

/** A table that scrolls by itself where it is wider than its place. From column `end` on, cells are figures. */
export function table(label, heads, rows, { end = heads.length } = {}) {
  const head = el("tr", {}, heads.map((word, at) => el(at < end ? "th" : "th.end", { scope: "col" }, word)));
  return el("div.prose", {}, el("div.table", { tabIndex: 0, role: "region", "aria-label": label },
    el("table", {}, el("thead", {}, head), el("tbody", {}, rows.map((cells) => tableRow(cells, end))))));
}

/** A row of such a table. */
export function tableRow(cells, end = cells.length) {
  const cell = (value, at) => el(at < end ? "td" : "td.end", {}, typeof value === "number" ? value.toLocaleString() : value);
  return el("tr", {}, cells.map(cell));
}

/** Formats seconds. */
export function seconds(value) {
  if (value === null || value === undefined) return "";
  if (value < 0.1) return `${Math.max(1, Math.round(value * 1000))} ms`;
  if (value < 60) return `${value.toFixed(1)} s`;
  return `${Math.floor(value / 60)} min ${Math.round(value % 60)} s`;
}

const TIME = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit" }); // made once: a list has hundreds of dates
const DATE = new Intl.DateTimeFormat([], { dateStyle: "medium", timeStyle: "short" });

/** Formats a date; today's by its time only. */
export function moment(text) {
  const then = new Date(text);
  return (then.toDateString() === new Date().toDateString() ? TIME : DATE).format(then);
}

/** Formats a count: `1 step`, `2 steps`. */
export const count = (number, word) => `${number.toLocaleString()} ${word}${number === 1 ? "" : "s"}`;

/** Formats US dollars; less than one with its hundredths of a cent. */
export const money = (usd) => (usd > 0 && usd < 0.0001 ? "< $0.0001" : `$${usd > 0 && usd < 1 ? usd.toFixed(4) : usd.toFixed(2)}`);

/** Whether a key belongs to a word that an input method is still composing. Safari ends the composition before the Enter
 * that confirms it, and marks that only by this code. */
export const isComposing = (event) => event.isComposing || event.keyCode === 229;

/** Returns a map from `by(one)` to those that have it, in their order. */
export function groupBy(all, by) {
  const groups = new Map();
  for (const one of all) groups.set(by(one), [...(groups.get(by(one)) ?? []), one]);
  return groups;
}

/** A model's name without its endpoint, and without the folder of its file or its provider. */
export const short = (name) => name.replace(/@[\w-]+$/, "").split("/").at(-1).replace(/\.gguf$/i, "");

/** Converts snake case to words. */
export const words = (name) => String(name).replaceAll("_", " ");

/** What became of a run, in words. */
export const stateOf = ({ status, did_nothing: idle }) => (idle ? "nothing was done" : words(status === "cancelled" ? "stopped" : status));

/** Returns a promise that resolves after some milliseconds. */
export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Calls `look()` every `ms` milliseconds, and when the tab is looked at again; not while it is hidden. */
export function keepLooking(look, ms) {
  const seen = () => document.hidden || look();
  setInterval(seen, ms);
  document.addEventListener("visibilitychange", seen);
}

/** Calls `draw` with the newest argument, at most once a frame. */
export function framed(draw) {
  let due = false;
  return () => {
    if (due) return;
    due = true;
    requestAnimationFrame(() => {
      due = false;
      draw();
    });
  };
}

const MOST_FILES = 1_000; // of a folder: more are read as a whole by the gateway

/** Gives files that are dropped anywhere on `zone`, also those in folders, to `give(files)`. While they are above it, the
 * element that `mark()` returns, if any, is marked. */
export function takeDrops(zone, mark, give) {
  const over = (is) => mark()?.classList.toggle("over", is);
  zone.addEventListener("dragover", (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return; // words that are moved
    event.preventDefault();
    over(true);
  });
  zone.addEventListener("dragleave", (event) => zone.contains(event.relatedTarget) || over(false));
  zone.addEventListener("drop", (event) => {
    over(false);
    if (!event.dataTransfer?.files.length) return;
    event.preventDefault();
    const all = filesIn(event.dataTransfer);
    attempt(mark() ?? zone.lastChild, async () => give(await all));
  });
}

/** The files of a drop, with those in its folders. Its entries are there only while its event is handled. */
async function filesIn({ items, files }) {
  const entries = [...items].map((item) => item.webkitGetAsEntry()).filter(Boolean);
  if (!entries.some((one) => one.isDirectory)) return [...files];
  const all = [];
  for (const entry of entries) await collect(entry, all);
  if (!all.length) throw new Failure("Nothing was added: the folder holds no files.");
  return all;
}

/** Adds the files below an entry; those that are hidden are no documents. */
async function collect(entry, all) {
  if (entry.isFile) all.push(await new Promise((done, failed) => entry.file(done, failed)));
  if (all.length > MOST_FILES)
    throw new Failure(`Nothing was added: the folder holds more than ${count(MOST_FILES, "file")}. Drop its folders one by one.`);
  if (!entry.isDirectory) return;
  const reader = entry.createReader();
  for (;;) {
    const some = await new Promise((done, failed) => reader.readEntries(done, failed)); // a hundred at a time
    if (!some.length) return;
    for (const one of some.filter(({ name }) => !name.startsWith("."))) await collect(one, all);
  }
}

/** Keeps a box scrolled to its end: call the returned function when it has grown, with `now` to begin. Stops if the
 * person scrolls up; its `down` is a button that leads back to the end, seen while that is out of sight. Before it begins,
 * the box stays where it is: a welcome longer than the window opens at its top. */
export function pinned(box) {
  let atEnd = false;
  let last = 0;
  const down = el("button.tool.down", { type: "button", title: "To the end", "aria-label": "To the end", hidden: true, onclick: () => stick({ now: true }) }, icon("down"));
  const draw = () => (down.hidden = box.scrollHeight - box.scrollTop - box.clientHeight < box.clientHeight / 2);
  box.addEventListener("scroll", () => {
    const near = box.scrollHeight - box.scrollTop - box.clientHeight < 60;
    atEnd = near || (atEnd && box.scrollTop >= last);
    last = box.scrollTop;
    draw();
  });
  const stick = ({ now = false } = {}) => {
    if (now) atEnd = true;
    if (atEnd) box.scrollTop = box.scrollHeight;
    draw();
  };
  new ResizeObserver(() => stick()).observe(box); // a keyboard that opens, a phone that is turned
  return Object.assign(stick, { down });
}
