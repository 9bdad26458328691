/** A conversation in the gateway: its address, what is noted about it, and the collection of its own files. */

import { alarm } from "./answer.js";
import { errorText, get, post } from "./api.js";
import { button, el } from "./dom.js";

export const pathOf = (id) => `v1/conversations/${encodeURIComponent(id)}`;

/** Whether a conversation was begun in the gateway, by this page or another client, and has its id from there. */
export const isChat = (id) => /^conv_/.test(id ?? "");

/** The collection that files of this chat alone are read into; the gateway deletes it with the chat. */
export const ownCollection = (id) => `chat-${id.replace(/^conv_/, "").slice(0, 20)}`;

/** Whether a collection is one of these. */
export const isOwnCollection = (name) => /^chat-[0-9a-f]{20}$/.test(name);

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
