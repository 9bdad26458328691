/** A conversation in the gateway: its address, what is noted about it, and the collection of its own files. */

import { alarm } from "./answer.js";
import { errorText, get, post, send } from "./api.js";
import { button, el, pause } from "./dom.js";

const READING_MS = 1_500; // between two attempts to delete files while one of them is read

export const pathOf = (id) => `v1/conversations/${encodeURIComponent(id)}`;

/** Whether a conversation was begun in the gateway, by this page or another client, and has its id from there. */
export const isChat = (id) => /^conv_/.test(id ?? "");

/** The collection that files of this chat alone are read into. */
export const ownCollection = (id) => `chat-${id.replace(/^conv_/, "").slice(0, 20)}`;

/** Whether a collection is one of these. */
export const isOwnCollection = (name) => /^chat-[0-9a-f]{20}$/.test(name);

/** Deletes the files of a chat; where one is being read, soon after its end. */
export async function dropFiles(id) {
  if (await tryDrop(id)) return;
  const later = async () => {
    do await pause(READING_MS);
    while (!(await tryDrop(id).catch(({ code }) => code !== "unreachable")));
  };
  later();
}

/** Whether a chat has no files any more, or none that this key may delete; false while one is being read. */
const tryDrop = (id) => send("DELETE", `v1/collections/${ownCollection(id)}`).then(() => true, (error) => {
  if (![403, 404, 409].includes(error.status)) throw error;
  return error.status !== 409;
});

/** Makes a chat in the gateway unless it is there, and calls `made(id)` then. Returns its id. */
export function begin(chat, made) {
  if (chat.id) return chat.id;
  chat.begun ??= post("v1/conversations", {}).then(({ id }) => {
    chat.id = id;
    made(id);
    return id;
  }).finally(() => (chat.begun = null));
  return chat.begun;
}

/** Changes some of what is noted about a conversation (`title`, `collection`) and leaves the rest; null takes a note away. */
export async function note(id, changes) {
  const { metadata } = await get(pathOf(id));
  const kept = Object.entries({ ...metadata, ...changes }).filter(([, value]) => value !== null);
  await post(pathOf(id), { metadata: Object.fromEntries(kept) });
}

/** Whether a request failed because its conversation is not there any more, and not for want of a room or a message. */
export async function isGone(id, { status }) {
  return status === 404 && Boolean(id) && get(pathOf(id), { quiet: true }).then(() => false, (error) => error.status === 404);
}

/** What is shown in place of a conversation that was not read: `again()` tries it again, `more` is said of one that is gone. */
export const unread = (error, again, more = "") => [
  alarm(error.status === 404 ? `This chat was deleted, or it belongs to somebody else. ${more}` : errorText(error)),
  el("div.row", {}, error.status === 404 ? el("a.button", { href: "#/chat" }, "New chat") : button("Try again", again, { picture: "again" }))];
