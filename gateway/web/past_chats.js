/** Past chats: searched, renamed, exported and deleted; a dot shows what goes on or waits. */

import { get, isAtLimit, post, request, send } from "./api.js";
import { note, pathOf } from "./conversation.js";
import { button, confirming, el, fill, icon, isComposing, moment } from "./dom.js";
import { OPEN } from "./follow.js";
import { marked, wordsOf } from "./search_words.js";

const PAGE = 50;
const LOOK_MS = 4_000; // between two looks while something goes on

/** The list. Calls `gone(id)` after a chat was deleted, and `named(title)` when the one that is shown is listed. */
export function pastChats({ gone, named }) {
  const list = el("ul.items");
  const search = el("input", { type: "search", placeholder: "Search chats", title: "Search titles and messages (Ctrl+K)", "aria-label": "Search chats", oninput: () => later(), onkeydown: seek });
  const more = button("Older", () => load(next), { kind: "plain" });
  more.hidden = true;
  const fresh = el("a.button.fresh", { href: "#/chat" }, icon("plus"), "New chat");
  const element = el("details.past", { onkeydown: walk, open: !matchMedia("(max-width: 60rem)").matches },
    el("summary", {}, "Chats", icon("open")),
    el("div.shelf", {}, el("div.seek", {}, fresh, search),
      el("nav.scroll", { "aria-label": "Past chats" }, list, more)));
  const narrow = matchMedia("(max-width: 60rem)");
  narrow.addEventListener("change", () => (element.open = !narrow.matches));
  addEventListener("reachchange", () => later());
  addEventListener("limitchange", () => isAtLimit() || later()); // before its end, to look would only use up what is waited for
  addEventListener("hashchange", () => narrow.matches && (element.open = false)); // a chat was chosen
  addEventListener("keydown", (event) => {
    if (event.key !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || document.querySelector("dialog[open]")) return;
    if (!document.body.dataset.scopes?.split(" ").includes("chat")) return; // this key has no chats
    event.preventDefault();
    isSought = true;
    if (element.checkVisibility()) seeks();
    else location.hash = current ? `#/chat/${encodeURIComponent(current)}` : "#/chat"; // asks `seeks()` once the chats are shown
  });
  let rows = [];
  let next = null;
  let current = "";
  let shown = null; // the words that the list is of, once there is one
  let timer = 0;
  let isSought = false; // the field, from another view

  /** Whether a person is at work in the list, searching, naming or choosing, so that the focus belongs there. */
  function seeks() {
    if (isSought) {
      element.open = true;
      search.select();
    }
    isSought = false;
    return isInUse();
  }

  const isInUse = (within = element) => within.querySelector("input:focus, :popover-open") !== null;

  /** Enter opens the first chat of the list. */
  async function seek(event) {
    if (event.key !== "Enter" || isComposing(event) || !search.value.trim()) return;
    await refresh();
    list.querySelector("a.item")?.click();
  }

  /** The arrows lead from the field into the list, and through it. */
  function walk(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const places = [search, ...list.querySelectorAll("a.item")];
    const at = places.indexOf(event.target);
    if (!step || at < 0 || !places[at + step]) return;
    event.preventDefault();
    places[at + step].focus();
  }

  function later() {
    clearTimeout(timer);
    timer = setTimeout(() => refresh(current), 250);
  }

  async function load(before) {
    const wanted = new URLSearchParams({ limit: PAGE });
    if (before) wanted.set("before", before);
    const words = search.value.trim();
    if (words) wanted.set("query", words);
    const isLook = !before && words === shown; // nobody waits for it, and may write something meanwhile
    const page = await get(`v1/conversations?${wanted}`, { quiet: isLook });
    if (words !== search.value.trim() || (before && before !== next)) return; // of other words, or pressed twice
    const isSame = shown === words;
    shown = words;
    if (before) rows = rows.concat(page.data);
    else if (!isSame || !page.next || rows.length <= PAGE) rows = page.data;
    else return void (rows = renewed(page.data), draw()); // older ones that were asked for stay
    next = page.next;
    draw();
  }

  /** The list with its first page anew. */
  function renewed(first) {
    const ids = new Set(first.map((one) => one.id));
    return first.concat(rows.filter((one) => !ids.has(one.id) && one.updated_at <= first.at(-1).updated_at));
  }

  async function refresh(id = current) {
    current = id;
    clearTimeout(timer);
    try {
      await load(null);
      if (rows.some((row) => row.open_runs && row.status !== "awaiting_approval")) timer = setTimeout(() => element.checkVisibility() && refresh(), LOOK_MS);
    } catch {
      if (shown === search.value.trim()) return; // they stay; the header says what is wrong
      fill(list, el("li.quiet.pad", {}, "They cannot be listed now."));
      more.hidden = true;
    }
  }

  function draw() {
    if (isInUse(list)) return; // a name is being written, or something chosen
    const none = search.value.trim() ? "No chat contains all of these words." : "Your chats appear here.";
    const focus = placeOf(document.activeElement);
    const open = rows.find((row) => row.id === current);
    if (open) named(open.title);
    fill(list, rows.map(drawRow), !rows.length && el("li.quiet.pad", {}, none));
    more.hidden = !next;
    focus?.();
  }

  /** Returns what gives the focus back to the same part of a chat's row, or of the row that is in its place now; null if it is
   * not in the list. */
  function placeOf(focused) {
    const row = focused.closest(".chatrow");
    if (!list.contains(row)) return null;
    const at = [...list.children].indexOf(row);
    const part = focused.closest(".menu") ? ".tool" : "a";
    return () => {
      const same = [...list.children].find((one) => one.dataset.chat === row.dataset.chat);
      ((same ?? list.children[Math.min(at, list.children.length - 1)]).querySelector(part) ?? search).focus({ preventScroll: true });
    };
  }

  function drawRow(row) {
    const element = el("li.chatrow", {}, item(row), menu(row));
    element.dataset.chat = row.id;
    return element;
  }

  function item({ id, title, room, status, open_runs: open, updated_at: at, match }) {
    const state = open || status === "failed" ? el(`span.dot.${status}`, { title: label(status) }) : null;
    const place = [id, ...(match ? [match.message] : [])].map(encodeURIComponent).join("/");
    return el("a.item", { href: `#/chat/${place}`, "aria-current": id === current ? "page" : null },
      el("b.cut", { dir: "auto" }, state, marked(title || "(no words)", wordsOf(shown))),
      match && el("span.excerpt", { dir: "auto" }, marked(match.excerpt, wordsOf(shown))), el("span.quiet.cut", {}, `${room} · ${moment(at)}`));
  }

  const label = (status) => (status === "awaiting_approval" ? "Waiting for you" : OPEN.has(status) ? "In progress" : "Failed");

  /** The button that opens what can be done with a chat, which is made then: a list has hundreds of rows. */
  function menu(row) {
    const name = `More for ${row.title || "this chat"}`;
    const press = el("button.tool", { type: "button", title: "Rename, export or delete", "aria-label": name, onclick: open }, icon("more"));
    const box = el("div.menu", {}, press);

    function open() {
      const popup = choices(row, box);
      box.querySelector(".popup")?.remove();
      box.append(popup);
      popup.showPopover();
      const at = press.getBoundingClientRect();
      popup.style.left = `${Math.max(8, Math.min(at.left, innerWidth - popup.offsetWidth - 8))}px`;
      popup.style.top = `${Math.min(at.bottom + 4, innerHeight - popup.offsetHeight - 8)}px`;
      popup.querySelector("button").focus();
    }

    return box;
  }

  function choices(row, box) {
    const popup = el("div.popup", { popover: "auto", role: "group", "aria-label": "Chat" },
      row.open_runs > 0 && button("Stop its answer", () => stop(row, popup), { kind: "plain", picture: "stop" }),
      button("Rename", () => rename(row, box, popup), { kind: "plain", picture: "edit" }),
      button("Export as Markdown", () => save(row, "markdown", popup), { kind: "plain", picture: "save" }),
      button("Export as JSON", () => save(row, "json", popup), { kind: "plain", picture: "save" }),
      confirming("Delete", "Really delete?", () => remove(row, popup), { kind: "plain", picture: "trash" }));
    return popup;
  }

  function rename(row, box, popup) {
    const field = el("input", { value: row.title, maxLength: 200, "aria-label": "Name of the chat" });
    const leave = () => {
      const shown = item(row);
      field.replaceWith(shown);
      shown.focus();
      draw();
    };
    const keep = async () => {
      const title = field.value.trim();
      if (title && title !== row.title)
        await note(row.id, { title }).then(() => (row.title = title), () => {}); // the list shows the name that it has
      leave();
      refresh();
    };
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !isComposing(event)) keep();
      if (event.key === "Escape") leave();
    });
    field.addEventListener("blur", () => setTimeout(draw), { once: true });
    popup.hidePopover();
    box.previousElementSibling.replaceWith(field);
    field.select();
  }

  /** Ends what goes on in a chat that nobody watches. */
  async function stop(row, popup) {
    const path = `${pathOf(row.id)}/messages`;
    const { data } = await get(`${path}?limit=1`);
    if (data.length) await post(`${path}/${data.at(-1).id}/stop`).catch((error) => {
      if (error.status !== 409) throw error; // else it has ended meanwhile
    });
    popup.hidePopover();
    refresh();
  }

  async function save(row, form, popup) {
    const response = await request(`${pathOf(row.id)}/export?format=${form}`, { accept: "*/*" });
    const name = (row.title || "chat").replace(/[^\p{L}\p{N} _-]/gu, "").trim().slice(0, 60) || "chat";
    const href = URL.createObjectURL(await response.blob());
    el("a", { href, download: `${name}.${form === "json" ? "json" : "md"}` }).click();
    popup.hidePopover();
    setTimeout(() => URL.revokeObjectURL(href), 60_000);
  }

  async function remove(row, popup) {
    await send("DELETE", pathOf(row.id)).catch((error) => {
      if (error.status !== 404) throw error; // else it went before
    });
    popup.hidePopover();
    rows = rows.filter((one) => one.id !== row.id); // older ones are not listed anew
    await refresh();
    gone(row.id);
  }

  return { element, refresh, seeks, words: () => wordsOf(shown ?? "") };
}
