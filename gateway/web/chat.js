/** Chat: the messages of a conversation, which the gateway keeps. The page loads them, and follows what has not ended. */

import { alarm, answer } from "./answer.js";
import { errorText, get, post, send } from "./api.js";
import { attachments } from "./attachments.js";
import { composer } from "./composer.js";
import { button, el, fill, pinned } from "./dom.js";
import { follow, OPEN } from "./follow.js";
import { pastChats } from "./past_chats.js";
import { question, tool, versions } from "./question.js";
import { welcome } from "./welcome.js";

const PAGE = 30; // exchanges that are loaded at once
const rooms = el("select.pill", { "aria-label": "Room" });
const models = el("select.pill", { "aria-label": "Model", title: "The model of this chat", hidden: true });
const log = el("div.log", { role: "log", "aria-label": "Conversation" });
const earlier = button("Earlier messages", () => loadEarlier(), { kind: "plain" });
const hero = el("div.hero");
const scroll = el("div.scroll", {}, el("div.column", {}, hero, earlier, log));
const tray = attachments({ read: (collection) => readInto(collection) });
const box = composer({
  label: "Message", placeholder: "Send a message", send: say, stop, aside: [rooms, models], attach: tray.add, tray: tray.element,
  canSend: () => tray.pictures.length > 0,
});
const past = pastChats({ gone: (id) => id === chat.id && (location.hash = "#/chat") });

export const view = el("section.view.chat", { "aria-label": "Chat" }, past.element,
  el("div.talking", {}, scroll, el("div.dock", {}, box.element)));

const stick = pinned(scroll);
let chat = { id: "", previous: null };
let current = null; // { id, reply } of the answer that is being written
let following = new AbortController();
let opened = Promise.resolve(); // once the chat of the address is loaded: a message sent before waits for it
const start = welcome({ hero, rooms, picks: models, say, focus: () => box.focus() });

export async function show(id = "") {
  if (id !== chat.id || !id) await (opened = open(id));
  else past.refresh(id);
  box.focus();
}

/** Starts a chat in a room with the first words of a question, once the view is shown. Other views link here. */
export async function enter(room, words) {
  await start.load(room);
  await (opened = open(""));
  if (room) rooms.value = room;
  start.draw();
  box.box.value = words;
  box.grow();
  box.focus();
}

/** Looks again at the rooms and models: others are in use now. */
export const refresh = () => start.load("", { afresh: true });

/** Shows a chat, or none. What goes on in the one before goes on without being watched. */
async function open(id) {
  leave();
  chat = { id, previous: null };
  log.replaceChildren();
  earlier.hidden = true;
  hero.hidden = Boolean(id);
  past.refresh(id);
  await start.load();
  if (!id) return start.draw();
  await reload();
}

function leave() {
  following.abort();
  following = new AbortController();
  current = null;
  box.busy(false);
}

/** Loads the messages of the branch that the chat is at, and follows an answer that has not ended. */
async function reload({ keep = false } = {}) {
  const { id } = chat;
  const chosen = start.target();
  leave();
  try {
    const found = await get(`${path(id)}/messages?limit=${PAGE}&render=html`);
    if (chat.id !== id) return;
    chat.previous = found.previous;
    earlier.hidden = !found.previous;
    if (found.room && start.target() === chosen) start.choose(found.room, found.model); // else another was chosen meanwhile
    const at = scroll.scrollTop;
    log.replaceChildren(...draw(found.data));
    hero.hidden = true;
    if (keep) scroll.scrollTop = at;
    else stick({ now: true });
    watchOpen(found.data);
  } catch (error) {
    fill(log, alarm(errorText(error)), el("div.row", {}, button("Try again", () => reload(), { picture: "again" })));
  }
}

async function loadEarlier() {
  const before = chat.previous;
  const height = scroll.scrollHeight;
  const found = await get(`${path(chat.id)}/messages?limit=${PAGE}&render=html&before=${encodeURIComponent(before)}`);
  chat.previous = found.previous;
  earlier.hidden = !found.previous;
  log.prepend(...draw(found.data));
  scroll.scrollTop += scroll.scrollHeight - height;
}

const path = (id) => `v1/conversations/${encodeURIComponent(id)}`;
const replies = new Map(); // id of a message -> its answer, of those that are shown

function draw(messages) {
  return messages.map((message) => (message.role === "user" ? drawQuestion(message) : drawAnswer(message)));
}

function drawQuestion({ id, content, images, parent, siblings }) {
  return question({
    text: content, images,
    resend: (text) => branch({ content: text, images, parent: parent ?? "root" }),
    pager: versions(siblings, id, choose, "message"),
  });
}

function drawAnswer({ id, parent, view: known }) {
  const again = () => branch({ parent });
  const reply = answer({ actions: [tool("Answer again", "again", again)], grown: stick, again });
  replies.set(id, reply);
  if (known) reply.view(known);
  return reply.element;
}

/** Follows the last answer if it has not ended. Only one of a branch can go on. */
function watchOpen(messages) {
  const last = messages.at(-1);
  if (last && OPEN.has(last.status)) watch(last.id, replies.get(last.id));
}

async function watch(id, reply) {
  const { signal } = following;
  current = { id, reply };
  box.busy(true);
  const seen = (known) => {
    reply.view(known);
    box.busy(known.status === "queued" || known.status === "running"); // who is asked may write what should change
    if (known.status === "awaiting_approval") past.refresh();
  };
  try {
    await follow(`${path(chat.id)}/messages/${id}/events`, { view: seen, blocks: reply.blocks, progress: reply.progress, lost: reply.lost }, signal);
  } catch (error) {
    if (error.name === "AbortError") return;
    reply.fail(error);
  }
  if (signal.aborted) return;
  current = null;
  box.busy(false);
  past.refresh(chat.id);
}

/** Sends a message at the end of the chat. The first one makes the chat, whose id is in the address at once. */
async function say(text) {
  await opened.catch(() => {}); // it says itself what failed
  if (tray.pictures.length && !start.sees()) {
    tray.warn(start.describeVision());
    return giveBack(text);
  }
  const images = tray.take();
  hero.hidden = true;
  const isReply = current !== null; // to a run that waits
  const asked = question({ text, images });
  const reply = answer({ grown: stick });
  if (isReply) current.reply.progress({ text: "Continuing" });
  else log.append(asked, reply.element);
  stick({ now: true });
  box.busy(true);
  try {
    if (!chat.id) await begin();
    const sent = await post(`${path(chat.id)}/messages`, { content: text, images, room: start.target() });
    if (isReply && sent.run_id === replyRun()) return; // its own stream goes on
    if (isReply) return await reload();
    replace(asked, reply.element, sent);
  } catch (error) {
    box.busy(false);
    if (isReply) return log.append(alarm(errorText(error)));
    reply.fail(error);
    giveBack(text);
  }
}

/** Puts a message that was not sent back into its box. */
function giveBack(text) {
  box.box.value ||= text;
  box.grow();
}

const replyRun = () => current?.id.replace(/^msg_/, "").replace(/-assistant$/, "");

/** Puts the message that the gateway has stored in place of the one that was sent, and follows its answer. */
function replace(asked, placeholder, { run_id: runId, user_message: userId, answer: answerId }) {
  const before = [...log.children].at(-3); // the answer before, whose message the new one follows
  const parent = [...replies].find(([, one]) => one.element === before)?.[0] ?? null;
  const text = asked.querySelector(".mine").textContent;
  const images = [...asked.querySelectorAll("img")].map((one) => one.src);
  asked.replaceWith(drawQuestion({ id: userId, content: text, images, parent, siblings: [userId] }));
  placeholder.replaceWith(drawAnswer({ id: answerId, parent: userId, run_id: runId }));
  stick({ now: true });
  past.refresh(chat.id);
  watch(answerId, replies.get(answerId));
}

async function begin() {
  const { id } = await post("v1/conversations", {});
  chat = { id, previous: null };
  history.replaceState(null, "", `#/chat/${encodeURIComponent(id)}`);
}

/** Sends a message that begins another branch, and shows that branch. */
async function branch(message) {
  leave();
  try {
    await post(`${path(chat.id)}/messages`, { ...message, room: start.target() });
    await reload();
    past.refresh(chat.id);
  } catch (error) {
    log.append(alarm(errorText(error)));
    stick({ now: true });
  }
}

/** Shows another version of a message, with what followed it. */
async function choose(message) {
  try {
    await send("PUT", `${path(chat.id)}/head`, { message });
    await reload({ keep: true });
  } catch (error) {
    log.append(alarm(errorText(error)));
  }
}

/** Stops the answer; what is written by then stays. */
async function stop() {
  if (!current) return;
  const { id, reply } = current;
  reply.progress({ text: "Stopping" });
  try {
    await post(`${path(chat.id)}/messages/${id}/stop`);
  } catch (error) {
    if (error.status !== 409) log.append(alarm(errorText(error))); // it has ended meanwhile
  }
}

/** A file was read into a collection: a plain model cannot look there. */
function readInto() {
  if (rooms.value === "chat" && start.has("knowledge")) start.choose("knowledge");
}
