/** HTML of answers, as the gateway has rendered and cleaned it. It is parsed in a document of its own, where nothing is
 * loaded or run, and copied element by element from an allow-list: only what is named here can get into the page. */

import { may } from "./access.js";
import { errorText, Failure, post, request } from "./api.js";
import { el, icon } from "./dom.js";

const MATHML = "http://www.w3.org/1998/Math/MathML";
const HTML = new Set(
  ("a abbr b blockquote br cite code del details em h3 h4 h5 h6 hr i img input ins kbd li mark ol p pre q s samp section " +
    "small span strong sub summary sup table tbody td th thead tr u ul var").split(" "));
const READ = new Set("blockquote details h3 h4 h5 h6 ol p section table ul".split(" ")); // each is read in its own direction
const MATH = new Set(
  ("math menclose mfrac mi mmultiscripts mn mo mover mpadded mphantom mprescripts mroot mrow mspace msqrt mstyle msub " +
    "msubsup msup mtable mtd mtext mtr munder munderover none").split(" "));
const KEPT = {
  code: ["class"], details: ["open"], li: ["id", "class"], ol: ["start", "class"], p: ["class"], section: ["class"], span: ["class"],
  sup: ["class"], td: ["class"], th: ["class"], ul: ["class"], abbr: ["title"],
};
const ARTIFACT = /^\/v1\/runs\/\w+\/artifacts\/[\w./%-]{1,300}\.(?:png|jpe?g|gif|webp)$/i;
const CITATION = /\[(\d{1,3})\]/;
const BATCH = 150_000; // characters of one request
const policy = window.trustedTypes?.createPolicy("stepgate", { createHTML: (text) => text }) ?? { createHTML: (text) => text };
const pictures = new Map(); // path -> promise of an object URL: a growing answer is shown many times
let waiting = [];

/** Replaces what a node holds by the HTML of an answer. `cite(n)` returns the handler of a citation, or null. */
export function showHtml(into, html, cite = () => null) {
  const parsed = new DOMParser().parseFromString(policy.createHTML(html), "text/html");
  into.replaceChildren(...copyAll(parsed.body, { cite, isProse: true }));
  return into;
}

/** Shows the blocks of an answer that is being written. Returns what takes a `blocks` frame: each block has its place,
 * and an open one is replaced as it grows, or added to. After a lost connection all of them come once more, and those that are
 * shown stay as they are: who reads further up, or has selected some words, does not lose them. */
export function growing(into) {
  let shown = []; // by its place, the `element` of a block and what it is `of`
  return ({ restart, blocks }) => {
    if (restart) {
      shown = shown.slice(0, blocks.length);
      const stays = new Set(shown.map((one) => one.element));
      for (const child of [...into.childNodes]) if (!stays.has(child)) child.remove();
    }
    for (const { index, html, text, appends } of blocks) {
      if (!shown[index]?.element.isConnected) shown[index] = { element: into.appendChild(el("div.block")), of: null };
      const block = shown[index];
      const isSame = block.of === (html ?? text) && !appends;
      block.of = html ?? (appends ? null : text);
      if (isSame) continue;
      if (html === null && appends) block.element.lastChild.append(text);
      else if (html === null) block.element.replaceChildren(el("p.plaintext", { dir: "auto" }, text));
      else showHtml(block.element, html);
    }
  };
}

/** Shows Markdown that did not come as HTML: as text, until the gateway has rendered it. */
export async function showMarkdown(into, text, cite) {
  if (into.textContent !== text) into.replaceChildren(el("p.plaintext", { dir: "auto" }, text)); // else it would be read out twice
  try {
    showHtml(into, await rendered(text), cite);
  } catch {
    // It stays readable as text.
  }
  return into;
}

/** Returns the address if a link may have it, else null. */
export function safeUrl(text) {
  try {
    const url = new URL(text);
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : null;
  } catch {
    return null; // no absolute address
  }
}

/** A link to another site that sends no referrer. */
export const link = (href, ...children) =>
  el("a", { href, target: "_blank", rel: "noopener noreferrer", referrerPolicy: "no-referrer" }, ...children);

/** Copies a text, and shows for a moment that it has. */
export async function copy(text, button) {
  const label = button.getAttribute("aria-label") ?? button.title;
  let word = "Copied";
  try {
    await write(text);
  } catch {
    word = "Cannot copy here";
  }
  const before = [...button.childNodes];
  button.replaceChildren(icon(word === "Copied" ? "done" : "warning"), el("span.hidden", { role: "status" }, word));
  button.title = word;
  setTimeout(() => {
    button.replaceChildren(...before);
    button.title = label ?? "";
  }, 1400);
}

/** Puts a text into the clipboard. Without TLS, browsers know only the old way. Throws where neither is allowed. */
async function write(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const focused = document.activeElement;
  const area = el("textarea.hidden", { value: text, readOnly: true });
  document.body.append(area);
  area.select();
  const isDone = document.execCommand("copy");
  area.remove();
  focused?.focus();
  if (!isDone) throw new Error("the browser does not allow it");
}

/** Asks for the HTML of a text, together with the others of this moment. */
function rendered(text) {
  return new Promise((resolve, reject) => {
    waiting.push({ text, resolve, reject });
    if (waiting.length === 1) setTimeout(flush);
  });
}

async function flush() {
  const all = waiting;
  waiting = [];
  while (all.length) {
    const batch = [all.shift()];
    let size = batch[0].text.length;
    while (all.length && batch.length < 400 && size + all[0].text.length < BATCH) {
      size += all[0].text.length;
      batch.push(all.shift());
    }
    try {
      const { htmls } = await post("v1/render", { texts: batch.map((one) => one.text) });
      batch.forEach((one, at) => one.resolve(htmls[at]));
    } catch (error) {
      for (const one of batch) one.reject(error);
    }
  }
}

const copyAll = (node, context) => [...node.childNodes].flatMap((child) => copyNode(child, context));

function copyNode(node, context) {
  if (node.nodeType === Node.TEXT_NODE) return context.isProse ? citations(node.data, context.cite) : node.data;
  if (node.nodeType !== Node.ELEMENT_NODE) return [];
  const name = node.localName;
  if (node.namespaceURI === MATHML) return MATH.has(name) ? formula(node) : node.textContent;
  if (!HTML.has(name)) return copyAll(node, context);
  if (name === "img") return picture(node.alt, node.getAttribute("src") ?? "");
  if (name === "a") return anchor(node, context);
  if (name === "pre") return code(node);
  if (name === "input") return el("input", { type: "checkbox", disabled: true, checked: node.checked, "aria-label": "Task" });
  const reads = READ.has(name) && !context.isRead; // the outermost one: `auto` looks past those inside that have it too
  const inner = { ...context, isProse: context.isProse && name !== "code", isRead: context.isRead || reads };
  const made = document.createElement(name);
  for (const attribute of KEPT[name] ?? [])
    if (node.hasAttribute(attribute)) made.setAttribute(attribute, node.getAttribute(attribute));
  made.append(...copyAll(node, inner));
  const whole = name === "table" ? el("div.table", { tabIndex: 0, role: "region", "aria-label": "Table" }, made) : made;
  if (reads) whole.dir = "auto"; // a table stands at the side where it is begun to be read
  if (name === "code") whole.dir = "ltr"; // `auto` looks past it: words decide, not code at their beginning
  return whole;
}

/** A text with its citations as buttons. */
function citations(text, cite) {
  const parts = text.split(CITATION); // text, number, text, ...
  return parts.map((part, at) => {
    if (at % 2 === 0) return part;
    const open = cite(Number(part));
    return open ? el("button.cite", { type: "button", title: `Source ${part}`, onclick: open }, part) : `[${part}]`;
  });
}

function anchor(node, context) {
  const href = node.getAttribute("href") ?? "";
  const inner = copyAll(node, { ...context, cite: () => null });
  if (href.startsWith("#fn")) return footnote(href.slice(1), node.id, inner);
  const safe = safeUrl(href);
  return safe ? link(safe, ...inner) : inner;
}

/** A reference to a footnote, or back. The hash of the page's address is its view, so the target is scrolled to. */
function footnote(target, id, inner) {
  const jump = () => {
    const found = document.getElementById(target);
    found?.scrollIntoView({ block: "center" });
    (found?.matches("button") ? found : found?.querySelector("button"))?.focus({ preventScroll: true });
  };
  return el("button.footnote", { type: "button", id, onclick: jump, title: target.startsWith("fnref") ? "Back to the text" : "Footnote" }, inner);
}

function code(node) {
  const inner = node.querySelector("code") ?? node;
  const language = /language-([\w+#.-]+)/.exec(inner.className)?.[1] ?? "";
  const shown = el("code", {}, copyAll(inner, { cite: () => null, isProse: false }));
  const press = el("button.tool", { type: "button", title: "Copy code", "aria-label": "Copy code", onclick: () => copy(shown.textContent, press) }, icon("copy"));
  return el("div.codeblock", { dir: "ltr" }, el("div.codehead", {}, el("span", {}, language), press), el("pre", { tabIndex: 0 }, shown));
}

function formula(node) {
  const made = document.createElementNS(MATHML, node.localName);
  if (node.localName === "math") made.setAttribute("dir", "ltr"); // also within words that are read from right to left
  for (const { name, value } of node.attributes)
    if (/^[a-z]+$/.test(name) && !/^(on|href|style|class|id|xmlns)/.test(name)) made.setAttribute(name, value);
  for (const child of node.childNodes)
    if (child.nodeType === Node.TEXT_NODE) made.append(child.data);
    else if (child.namespaceURI === MATHML && MATH.has(child.localName)) made.append(formula(child));
  return made;
}

/** An image of an artifact. It is fetched with the caller's key, which an image's address cannot carry. */
function picture(alt, path) {
  if (!ARTIFACT.test(path) || path.includes("..")) return alt;
  const image = el("img", { alt });
  const below = path.slice(1); // relative, because a proxy may serve the gateway below a path
  const load = async () => {
    if (!(await may("agent"))) throw new Failure("It is shown to a key with the scope “agent”.");
    return URL.createObjectURL(await (await request(below, { accept: "image/*" })).blob());
  };
  if (!pictures.has(path)) pictures.set(path, load());
  pictures.get(path).then((url) => (image.src = url), (error) => {
    pictures.delete(path); // the next look tries again
    image.replaceWith(el("span.quiet", {}, `${alt || "A picture"}: ${errorText(error)}`));
  });
  return image;
}
