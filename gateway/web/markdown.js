/** Renders Markdown from models and tools as DOM nodes. Nothing is parsed as HTML; images become links, except artifacts
 * of this gateway's runs; links are http, https or mailto. Every search for a closing mark scans the text once, so that no text can make it slow. */

import { request } from "./api.js";
import { el } from "./dom.js";

const DEEPEST = 8;
const LONGEST = 20_000; // characters of one paragraph that are looked at for marks
const ITEM = /^( *)([-*+]|\d{1,9}[.)])(?: +|$)/;
const FENCE = /^ {0,3}(`{3,}|~{3,})([^`]*)$/;
const RULE = /^ {0,3}([-*_])(?: *\1){2,} *$/;
const ARTIFACT = /^!\[([^\]\n]{0,200})\]\((\/v1\/runs\/\w+\/artifacts\/[\w./%-]{1,300}\.(?:png|jpe?g|gif|webp))\)/i;
const drawn = new WeakMap();
const pictures = new Map(); // path -> promise of an object URL: a growing answer is rendered many times

/** Renders `text` into a node. Unchanged blocks stay, so that a growing text does not flicker. `cite(n)` returns the
 * handler of a citation's number, or null if it is not a citation. */
export function markdown(into, text, cite = () => null, { afresh = false } = {}) {
  const old = afresh ? [] : (drawn.get(into) ?? []);
  if (afresh) into.replaceChildren();
  const found = [...blocks(text.replace(/\r\n?/g, "\n").split("\n"), 0, cite)];
  let same = 0;
  while (same < Math.min(old.length, found.length) && old[same].source === found[same].source) same += 1;
  for (const block of old.slice(same)) block.node.remove();
  const fresh = found.slice(same).map(({ source, make }) => ({ source, node: make() }));
  into.append(...fresh.map((block) => block.node));
  drawn.set(into, [...old.slice(0, same), ...fresh]);
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

function* blocks(lines, depth, cite) {
  let at = 0;
  while (at < lines.length) {
    if (!lines[at].trim()) {
      at += 1;
      continue;
    }
    const [end, make] = block(lines, at, depth, cite);
    yield { source: lines.slice(at, end).join("\n") + (end < lines.length ? "\n" : ""), make };
    at = end;
  }
}

/** Returns the block that starts at a line: its end, and how to render it. */
function block(lines, at, depth, cite) {
  const line = lines[at];
  const fence = FENCE.exec(line);
  if (fence) return fenced(lines, at, fence);
  const heading = /^(#{1,6})\s/.exec(line);
  if (heading) {
    const level = Math.min(6, heading[1].length + 2); // the page has headings of its own above
    return [at + 1, () => el(`h${level}`, {}, inline(line.slice(heading[1].length).trim(), cite))];
  }
  if (RULE.test(line)) return [at + 1, () => el("hr")];
  if (isTable(lines, at)) return table(lines, at, cite);
  if (depth < DEEPEST && line.startsWith(">")) return quote(lines, at, depth, cite);
  if (depth < DEEPEST && ITEM.test(line)) return list(lines, at, depth, cite);
  let end = at + 1;
  while (end < lines.length && !begins(lines, end)) end += 1;
  return [end, () => el("p", {}, inline(lines.slice(at, end).join("\n").trim(), cite))];
}

/** Returns whether a paragraph ends before this line. */
function begins(lines, at) {
  const line = lines[at];
  const marks = [/^#{1,6}\s|^>/, FENCE, RULE, ITEM];
  return !line.trim() || marks.some((mark) => mark.test(line)) || isTable(lines, at);
}

function fenced(lines, at, [, mark]) {
  const closes = (line) => line.startsWith(mark) && !line.replaceAll(mark[0], "");
  let end = at + 1;
  while (end < lines.length && !closes(lines[end].trim())) end += 1;
  const code = lines.slice(at + 1, end).join("\n");
  return [Math.min(lines.length, end + 1), () => el("pre", { tabIndex: 0 }, el("code", {}, code))];
}

function quote(lines, at, depth, cite) {
  let end = at;
  while (end < lines.length && lines[end].startsWith(">")) end += 1;
  const inner = lines.slice(at, end).map((line) => line.replace(/^> ?/, ""));
  return [end, () => el("blockquote", {}, [...blocks(inner, depth + 1, cite)].map(({ make }) => make()))];
}

function list(lines, at, depth, cite) {
  const [, indent, mark] = ITEM.exec(lines[at]);
  const numbered = /\d/.test(mark);
  const items = [];
  let end = at;
  for (; end < lines.length; end += 1) {
    const line = lines[end];
    const found = ITEM.exec(line);
    if (found && found[1].length <= indent.length + 1) {
      if (/\d/.test(found[2]) !== numbered || found[1].length < indent.length) break;
      items.push([line.slice(found[0].length)]);
    } else if (line.startsWith(" ".repeat(indent.length + 2)) || found) items.at(-1).push(line.slice(indent.length + 2));
    else if (!line.trim()) {
      const next = lines[end + 1] ?? "";
      if (!next.startsWith(" ".repeat(indent.length + 2)) && !ITEM.test(next)) break;
      items.at(-1).push("");
    } else if (lines[end - 1].trim() && !begins(lines, end)) items.at(-1).push(line);
    else break;
  }
  const draw = (item) => {
    const inner = [...blocks(item, depth + 1, cite)].map(({ make }) => make());
    return el("li", {}, inner[0]?.tagName === "P" ? [...inner.shift().childNodes, ...inner] : inner);
  };
  return [end, () => el(numbered ? "ol" : "ul", numbered ? { start: Number.parseInt(mark, 10) } : {}, items.map(draw))];
}

function isTable(lines, at) {
  const rule = lines[at + 1] ?? "";
  return lines[at].includes("|") && rule.includes("|") && rule.includes("-") && /^[ :|-]+$/.test(rule);
}

function table(lines, at, cite) {
  let end = at + 2;
  while (end < lines.length && lines[end].includes("|")) end += 1;
  const cells = (line) => line.trim().replace(/^\|/, "").replace(/\|$/, "").split("|").map((cell) => cell.trim());
  const side = (cell) => (!cell.endsWith(":") ? "" : cell.startsWith(":") ? "middle" : "end");
  const sides = cells(lines[at + 1]).map(side);
  const row = (line, tag) => {
    const found = cells(line);
    return el("tr", {}, sides.map((where, n) => el(where ? `${tag}.${where}` : tag, {}, inline(found[n] ?? "", cite))));
  };
  return [end, () =>
    el("div.table", { tabIndex: 0, role: "region", "aria-label": "Table" },
      el("table", {}, el("thead", {}, row(lines[at], "th")),
        el("tbody", {}, lines.slice(at + 2, end).map((line) => row(line, "td")))))];
}

/** Renders inline marks as nodes. */
function inline(text, cite, depth = 0) {
  const nodes = [];
  const missing = new Set(); // closing marks that do not come any more
  let plain = "";
  let at = 0;
  const push = (node, length) => {
    if (plain) nodes.push(plain);
    plain = "";
    nodes.push(node);
    at += length;
  };
  const until = Math.min(text.length, LONGEST);
  while (at < until) {
    const found = special(text, at, missing, cite, depth);
    if (found) push(...found);
    else plain += text[at++];
  }
  plain += text.slice(at);
  return plain ? [...nodes, plain] : nodes;
}

/** Returns the mark that starts here as node and length, or null for plain text. */
function special(text, at, missing, cite, depth) {
  const letter = text[at];
  if (letter === "\n") return [el("br"), 1];
  if (letter === "\\" && /[\\`*_~[\]()#+.!|<>-]/.test(text[at + 1] ?? "")) return [text[at + 1], 2];
  if (letter === "`") return codeSpan(text, at, missing);
  if (letter === "*" || letter === "_" || letter === "~") return emphasis(text, at, missing, cite, depth);
  if (letter === "!" && text[at + 1] === "[") {
    const [mark, alt, path] = ARTIFACT.exec(text.slice(at, at + 600)) ?? [];
    if (mark && !path.includes("..")) return [picture(alt, path), mark.length];
    const image = linked(text, at + 1, cite, depth, missing);
    return image && [el("span", {}, "image: ", image[0]), image[1] + 1];
  }
  if (letter === "[") return citation(text, at, cite) ?? linked(text, at, cite, depth, missing);
  if (letter === "h" || letter === "<") return address(text, at);
  return null;
}

/** Returns an image of an artifact. It is fetched with the caller's key, which an image's address cannot carry. */
function picture(alt, path) {
  const image = el("img", { alt });
  const below = path.slice(1); // relative, because a proxy may serve the gateway below a path
  const load = async () => URL.createObjectURL(await (await request(below, { accept: "image/*" })).blob());
  if (!pictures.has(path)) pictures.set(path, load());
  pictures.get(path).then((url) => (image.src = url), () => pictures.delete(path)); // without it, the text is shown
  return image;
}

function codeSpan(text, at, missing) {
  const [mark] = /^`{1,20}/.exec(text.slice(at, at + 20));
  const end = missing.has(mark) ? -1 : text.indexOf(mark, at + mark.length);
  if (end < 0) {
    missing.add(mark);
    return [mark, mark.length];
  }
  return [el("code", {}, text.slice(at + mark.length, end)), end + mark.length - at];
}

function emphasis(text, at, missing, cite, depth) {
  const mark = text[at] === text[at + 1] ? text[at].repeat(2) : text[at];
  if (mark === "~" || depth >= DEEPEST || missing.has(mark)) return null;
  if (/\s/.test(text[at + mark.length] ?? " ")) return null;
  if (text[at] === "_" && /\w/.test(text[at - 1] ?? "")) return null; // snake_case
  let end = at;
  do {
    end = text.indexOf(mark, end + mark.length);
    while (mark.length === 1 && end > 0 && text[end + 1] === mark) end = text.indexOf(mark, end + 2);
  } while (end > 0 && (/\s/.test(text[end - 1]) || (text[at] === "_" && /\w/.test(text[end + mark.length] ?? ""))));
  if (end < 0 || end > LONGEST) {
    missing.add(mark);
    return null;
  }
  while (mark.length === 2 && text[end + 2] === mark[0]) end += 1; // ***both***
  const tag = mark === "~~" ? "del" : mark.length === 2 ? "strong" : "em";
  return [el(tag, {}, inline(text.slice(at + mark.length, end), cite, depth + 1)), end + mark.length - at];
}

function citation(text, at, cite) {
  const found = /^\[(\d{1,3})\](?!\()/.exec(text.slice(at, at + 6));
  const open = found && cite(Number(found[1]));
  if (!open) return null;
  return [el("button.cite", { type: "button", title: `Source ${found[1]}`, onclick: open }, found[1]), found[0].length];
}

function linked(text, at, cite, depth, missing) {
  if (depth >= DEEPEST || missing.has("](")) return null;
  const middle = text.indexOf("](", at);
  if (middle < 0) missing.add("](");
  const end = middle < 0 || middle - at > 1000 ? -1 : closing(text, middle + 2);
  if (end < 0) return null;
  const label = text.slice(at + 1, middle);
  const target = text.slice(middle + 2, end).trim().split(/\s/)[0];
  const href = safeUrl(target);
  const length = end + 1 - at;
  if (href === null) return [`${label} (${target})`, length];
  return [link(href, label ? inline(label, () => null, DEEPEST) : target), length];
}

/** Returns the end of a link's parenthesis, which may contain nested pairs. */
function closing(text, from) {
  let open = 1;
  for (let at = from; at < Math.min(text.length, from + 2000); at += 1) {
    if (text[at] === "(") open += 1;
    else if (text[at] === ")" && (open -= 1) === 0) return at;
    else if (text[at] === "\n") return -1;
  }
  return -1;
}

function address(text, at) {
  if (/\w/.test(text[at - 1] ?? "")) return null;
  const found = /^<?(https?:\/\/[^\s<>"'`|\]]{1,2000})>?/.exec(text.slice(at, at + 2010));
  if (!found) return null;
  let shown = found[1];
  while (/[.,;:!?*_]$/.test(shown) || (shown.endsWith(")") && !shown.includes("("))) shown = shown.slice(0, -1);
  const href = safeUrl(shown);
  return href && [link(href, shown), text[at] === "<" ? found[0].length : shown.length];
}
