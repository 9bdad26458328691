/** Past chats: the conversations of the newest runs, as a list beside the chat. */

import { get } from "./api.js";
import { el, fill, moment } from "./dom.js";

const NEWEST_RUNS = 200;
const MINE = "web-"; // chats of this page; other clients keep lists of their own

/** Returns a chat without messages, with an id that nobody else has. */
export function newTalk() {
  const bytes = crypto.getRandomValues(new Uint8Array(12)); // randomUUID needs HTTPS
  return { id: MINE + Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join(""), messages: [] };
}

/** The list. Calls `chosen(id)` for a pressed chat. */
export function pastChats({ chosen }) {
  const list = el("ul.items");
  const element = el("details.past", { open: matchMedia("(min-width: 60.01rem)").matches },
    el("summary", {}, "Chats"),
    el("nav.scroll", { "aria-label": "Past chats" }, list));
  let rooms = new Map();

  async function refresh(current) {
    try {
      const { data } = await get(`v1/runs?limit=${NEWEST_RUNS}`);
      const talks = new Map();
      for (const run of data) {
        const id = run.conversation_id;
        if (id?.startsWith(MINE)) talks.set(id, { last: run.created_at, ...talks.get(id), title: run.title, room: run.room });
      }
      rooms = new Map([...talks].map(([id, talk]) => [id, talk.room]));
      fill(list, [...talks].map(([id, talk]) => el("li", {}, item(id, talk, id === current))),
        !talks.size && el("li.quiet.pad", {}, "None yet."));
    } catch {
      fill(list, el("li.quiet.pad", {}, "They cannot be listed now."));
    }
  }

  const item = (id, { title, room, last }, isCurrent) =>
    el("button.item", { type: "button", onclick: () => chosen(id), "aria-current": isCurrent ? "true" : null },
      el("b.cut", {}, title || "(no words)"), el("span.quiet.cut", {}, `${room} · ${moment(last)}`));

  /** Returns the messages of a chat and the room of its newest run. */
  async function load(id) {
    const { history } = await get(`v1/conversations/${encodeURIComponent(id)}/state`);
    return { messages: history.map(({ role, content }) => ({ role, content })), room: rooms.get(id) ?? "" };
  }

  return { element, refresh, load };
}
