/** Chat: the messages of a conversation, which the gateway keeps. The page loads them, and follows what has not ended. */

import { alarm, answer } from "./answer.js";
import { errorText, Failure, get, post, send } from "./api.js";
import { chatBox } from "./chat_box.js";
import { begin, isGone, note, ownCollection, pathOf, unread } from "./conversation.js";
import { deliver } from "./delivery.js";
import { button, el, keepLooking, moveFocus, pinned, takeDrops } from "./dom.js";
import { follow, OPEN } from "./follow.js";
import { makeMessages } from "./messages.js";
import { pastChats } from "./past_chats.js";
import { question } from "./question.js";
import { reveal } from "./search_words.js";
import { entitle } from "./title.js";
import { welcome } from "./welcome.js";

const PAGE = 30; // exchanges that are loaded at once
const LONGEST_PAGE = 100; // exchanges: the most that the gateway sends at once
const LOOK_MS = 15_000; // between two looks whether the chat went on in another tab or browser
const rooms = el("select.pill", { "aria-label": "Room" });
const models = el("select.pill", { "aria-label": "Model", title: "The model of this chat", hidden: true });
const messages = makeMessages({ branch: (message) => branch(message), choose: (id) => choose(id), grown: () => stick(), left: () => box.focus() });
const { element: log, replies } = messages;
const earlier = button("Earlier messages", () => loadEarlier(), { kind: "plain" });
const hero = el("div.hero");
const scroll = el("div.scroll", {}, el("div.column", {}, hero, el("h1.hidden", {}, "Chat"), earlier, log));
const stick = pinned(scroll);
const box = chatBox({ aside: [rooms, models], send: say, stop, filesOf: () => filesOf(chat) });
const { tray } = box;
const past = pastChats({ gone: (id) => id === chat.id && (location.hash = "#/chat"), named: (title) => entitle("chat", title) });

export const view = el("section.view.chat", { "aria-label": "Chat" }, past.element,
  el("div.talking", {}, scroll, el("div.dock", {}, stick.down, box.element)));
takeDrops(view, () => box.element, tray.add);
let chat = { id: "", previous: null, head: null };
let current = null; // { id, reply } of the answer that is being written
let following = new AbortController();
let [isSending, isBranching, isToStop] = [false, false, false];
let opened = Promise.resolve(); // once the chat of the address is loaded: a message sent before waits for it
const start = welcome({ hero, rooms, picks: models, say, focus: () => box.focus() });

export async function show(id = "", message = "") {
  if (id !== chat.id || !id) await (opened = open(id));
  else past.refresh(id), look(), box.look();
  if (message && chat.head) await leadTo(message).catch(complain);
  else if (!past.seeks()) box.focus();
}

/** Starts a chat in a room with the first words of a question, once the view is shown. Other views link here. */
export async function enter(room, words) {
  await start.load(room);
  await (opened = open(""));
  if (room) rooms.value = room;
  start.draw();
  box.write(words);
  box.focus();
}

/** Looks again at the rooms and models: others are in use now. */
export const refresh = () => start.load("", { afresh: true });

/** Shows a chat, or none. What goes on in the one before goes on without being watched. */
async function open(id) {
  leave();
  chat = { id, previous: null, head: null };
  box.open(id);
  entitle("chat");
  messages.empty();
  [earlier.hidden, hero.hidden] = [true, Boolean(id)];
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
    const found = await get(`${pathOf(id)}/messages?limit=${PAGE}&render=html`);
    if (chat.id !== id) return;
    chat.head = found.head;
    if (found.room && start.target() === chosen) start.choose(found.room, found.model); // else another was chosen meanwhile
    const at = scroll.scrollTop;
    if (!messages.place(found.data)) earlier.hidden = !(chat.previous = found.previous);
    entitle("chat", found.title);
    hero.hidden = found.data.length > 0;
    box.limitTo(found.collection);
    if (keep) scroll.scrollTop = at;
    stick({ now: !keep });
    watchOpen(found.data);
  } catch (error) {
    if (chat.id !== id) return;
    chat.head = null; // so that the next look tries again
    if (error.status === 404 || !log.querySelector("[data-message]")) messages.empty(...unread(error, () => reload()));
    else if (!keep) complain(error); // what is shown stays
  }
}

/** Shows what was written in this chat elsewhere, unless something is being written here. */
async function look() {
  const shown = chat;
  const isIdle = () => chat === shown && shown.id && !current && !isSending && !log.querySelector(".edit");
  if (document.hidden || !view.checkVisibility() || !isIdle()) return;
  const found = await get(`${pathOf(shown.id)}/messages?limit=0`, { quiet: true }).catch((error) => error.status === 404 && { head: null });
  if (!found || found.head === shown.head || !isIdle()) return; // not reached: the next look may succeed
  await reload({ keep: true });
  past.refresh();
}

keepLooking(look, LOOK_MS);
addEventListener("focus", look);

async function loadEarlier(limit = PAGE) {
  const { id, previous: before } = chat;
  const height = scroll.scrollHeight;
  const found = await get(`${pathOf(chat.id)}/messages?limit=${limit}&render=html&before=${encodeURIComponent(before)}`);
  if (chat.id !== id || chat.previous !== before) return; // another chat, or pressed twice
  messages.prepend(found.data);
  if (!found.previous) moveFocus(earlier, log.firstElementChild);
  earlier.hidden = !(chat.previous = found.previous);
  scroll.scrollTop += scroll.scrollHeight - height;
}

/** Leads to a message that a search has found: an earlier one, or one of another branch, which is shown then. */
async function leadTo(message, { isOfBranch = false } = {}) {
  const here = chat;
  const at = () => log.querySelector(`[data-message="${CSS.escape(message)}"]`);
  while (chat === here && here.previous && !at()) await loadEarlier(LONGEST_PAGE);
  if (chat !== here) return;
  history.replaceState(null, "", `#/chat/${encodeURIComponent(here.id)}`);
  if (at()) return reveal(at(), past.words());
  if (isOfBranch) return;
  await send("PUT", `${pathOf(here.id)}/head`, { message });
  await reload();
  await leadTo(message, { isOfBranch: true });
}

/** Follows the last answer if it has not ended. Only one of a branch can go on. */
function watchOpen(messages) {
  const last = messages.at(-1);
  if (last && OPEN.has(last.status)) watch(last.id, replies.get(last.id));
}

async function watch(id, reply) {
  const { signal } = following;
  current = { id, reply };
  box.busy(reply.element.dataset.status !== "awaiting_approval"); // its question is displayed: words answer it
  const seen = (known) => {
    reply.view(known);
    box.busy(known.status === "queued" || known.status === "running"); // who is asked may write what should change
    if (known.status === "awaiting_approval") past.refresh();
  };
  try {
    await follow(`${pathOf(chat.id)}/messages/${id}/events`, { view: seen, blocks: reply.blocks, thought: reply.thought, progress: reply.progress, lost: reply.lost }, signal);
  } catch (error) {
    if (error.name === "AbortError") return;
    reply.fail(error);
    if (error.status === 401) chat.head = null; // with a valid key, the next look shows it
  }
  if (signal.aborted) return;
  if (reply.element.dataset.status === "failed") dispatchEvent(new Event("answerfailed"));
  current = null;
  box.busy(false);
  past.refresh(chat.id);
  if (reply.element.dataset.status !== "succeeded") look(); // the chat may have been deleted elsewhere
}

/** Sends a message at the end of the chat. The first one makes the chat, whose id is in the address at once. */
async function say(text) {
  const here = chat;
  await opened.catch(() => {}); // it says itself what failed
  if (here.isHeld) return box.giveBack(here.id, text); // the message before it waits for its pictures
  here.isHeld = true;
  const isReady = await tray.prepared(() => !start.sees() && start.describeVision()).finally(() => (here.isHeld = false));
  if (!isReady || chat !== here) return box.giveBack(here.id, text);
  if (!text && !tray.hasPictures) return; // pressed twice
  const pictures = tray.take({ keepsFiles: true });
  const images = pictures.map((one) => one.url);
  hero.hidden = true;
  for (const one of log.querySelectorAll(".unsent")) one.remove(); // the same message as a rule
  const [isReply, approvals] = [current !== null, current?.reply.approvals ?? []]; // to a run that waits
  const asked = question({ text, images });
  const reply = answer({ grown: stick });
  if (isReply) current.reply.progress({ text: "Continuing" });
  else log.append(asked, reply.element);
  stick({ now: true });
  box.busy(true);
  let target = start.target();
  [isSending, isToStop] = [true, false];
  try {
    await begun(here);
    if (tray.holdsFiles) {
      reply.progress({ text: "Reading what is attached" });
      const areRead = await box.filesRead();
      if (areRead === null) return takeBack(text, pictures, [asked, reply.element]);
      if (!areRead) throw new Failure("Not sent: a file could not be read. Try it again below, or remove it.");
      if (chat === here) target = start.target(); // files have a room of their own
    }
    const held = (isHeld) => reply.progress({ text: isHeld ? "Waiting for the key’s limit of requests a minute" : "Sending" });
    const message = { content: text, images, room: target || undefined, approvals };
    const sent = await deliver(`${pathOf(here.id)}/messages`, message, (path, body, { once }) => post(path, body, { once, held }));
    if (chat !== here) return past.refresh(); // another chat was opened meanwhile; this one goes on
    if (isReply && sent.answer === current?.id) return; // its own stream goes on
    if (isReply || sent.parent !== here.head) return await reload(); // another tab was faster
    messages.settle(asked, reply.element, sent);
    here.head = sent.answer;
    stick({ now: true });
    past.refresh(here.id);
    watch(sent.answer, replies.get(sent.answer));
    if (isToStop) stop(); // pressed before the answer had an id
  } catch (error) {
    if (chat === here) box.busy(false);
    if (await isGone(here.id, error)) return lose(here, error, text, pictures);
    box.giveBack(here.id, text, pictures);
    if (chat === here && error.status === 409) await reload(); // a question was asked or decided elsewhere
    if (isReply || error.status === 409) return chat === here && complain(error);
    reply.fail(error);
    for (const one of [asked, reply.element]) one.classList.add("unsent");
  } finally {
    isSending = false;
  }
}

/** Takes a message off the page again: it was stopped before it was sent. */
function takeBack(text, pictures, drawn) {
  for (const one of drawn) one.remove();
  hero.hidden = log.childElementCount > 0;
  box.busy(false);
  box.giveBack(chat.id, text, pictures);
}

/** A chat was deleted before a message could be sent in it: the message waits in a new one. */
function lose(here, error, text = "", pictures = []) {
  here.head = null;
  box.giveBack("", text, pictures);
  if (chat === here) messages.empty(...unread(error, null, text && "Your message waits in a new chat."));
}

/** Returns the id of a chat, which is in the address at once. */
const begun = (here) => begin(here, (id) => {
  if (chat !== here) return;
  history.replaceState(null, "", `#/chat/${encodeURIComponent(id)}`);
  box.rename(id);
});

/** Sends a message that begins another branch, and shows that branch. */
async function branch(message) {
  if (isBranching) return; // pressed twice
  isBranching = true;
  const here = chat;
  try {
    await post(`${pathOf(here.id)}/messages`, { ...message, room: start.target(), withdraw: true });
    if (chat === here) await reload();
    past.refresh();
  } catch (error) {
    const pictures = (message.images ?? []).filter((url) => url.startsWith("data:")).map((url) => ({ url, name: "Picture" }));
    if (await isGone(here.id, error)) return lose(here, error, message.content, pictures);
    if (chat !== here) return;
    complain(error);
    stick({ now: true });
  } finally {
    isBranching = false;
  }
}

const complain = (error) => log.append(alarm(errorText(error)));

/** Shows another version of a message, with what followed it. */
const choose = (message) => send("PUT", `${pathOf(chat.id)}/head`, { message }).then(() => reload({ keep: true })).catch(complain);

/** Stops the answer; what is written by then stays. A message that is being sent is stopped once it is there. */
async function stop() {
  box.halt();
  if (!current) return void (isToStop = isSending);
  const { id, reply } = current;
  reply.progress({ text: "Stopping" });
  await post(`${pathOf(chat.id)}/messages/${id}/stop`).catch((error) => error.status === 409 || complain(error)); // it has ended meanwhile
}

const filesOf = (here) => ({ chat: here, own: async () => ownCollection(await begun(here)), read: (collection, room) => readInto(here, collection, room), free: (collection) => box.free(here.id, collection) });
/** A file was read into a collection: from now on `room` answers this chat from there. */
async function readInto(here, collection, room) {
  const id = await begun(here);
  await note(id, { collection });
  if (chat.id !== id) return;
  if (["chat", "stepgate"].includes(rooms.value) && start.has(room)) start.choose(room);
  box.limitTo(collection);
}
