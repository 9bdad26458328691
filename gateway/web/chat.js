/** Chat with any room through /v1/chat/completions, with streamed answers. */

import { alarm, answer } from "./answer.js";
import { events, Failure, get, post, request, errorText } from "./api.js";
import { composer } from "./composer.js";
import { button, el, fill, pinned } from "./dom.js";
import { markdown } from "./markdown.js";
import { newTalk, pastChats } from "./past_chats.js";

const SUGGESTIONS = {
  stepgate: ["What is 17.5 * 240, and what time is it in Stockholm?", "Remember that I prefer short answers."],
  knowledge: ["What do my documents say about escalation?"],
  incident: ["P1 incident: user profile picture errors causing latency and failures."],
  chat: ["Explain in three sentences what an event log is."],
};

const BUILDER = "pipelines"; // has a view of its own

const rooms = el("select.pill", { "aria-label": "Room" });
const log = el("div.log", { role: "log", "aria-label": "Conversation" });
const hero = el("div.hero");
const scroll = el("div.scroll", {}, el("div.column", {}, hero, log));
const fresh = button("New chat", restart, { kind: "plain", picture: "plus" });
const aside = el("div.row", {}, rooms, fresh);
const box = composer({ label: "Message", placeholder: "Send a message", send: say, stop, aside });

const past = pastChats({ chosen: (id) => (location.hash = `#/chat/${encodeURIComponent(id)}`) });

export const view = el("section.view.chat", { "aria-label": "Chat" }, past.element,
  el("div.talking", {}, scroll, el("div.dock", {}, box.element)));

const stick = pinned(scroll);
let talk = newTalk();
let current = null; // { runId, controller } while an answer comes
let known = [];
let isWithoutModel = false;
let loading = null;
rooms.addEventListener("change", welcome);

export async function show(id = "") {
  restartable();
  box.focus();
  past.refresh(talk.id);
  await loadRooms();
  if (id && id !== talk.id) await reopen(id);
}

/** Loads the rooms once, or `afresh`: the studio may have made one meanwhile. */
function loadRooms({ afresh = false } = {}) {
  if (afresh) loading = null;
  loading ??= fetchRooms();
  return loading;
}

async function fetchRooms() {
  try {
    const chosen = rooms.value;
    const ready = fetch("ready").then((response) => response.json()).catch(() => null); // never a reason to show no rooms
    known = (await get("v1/models")).data;
    isWithoutModel = Boolean((await ready)?.components?.models?.detail.includes("rules mode"));
    fill(rooms, known.map((room) => el("option", { value: room.id }, room.name || room.id)));
    if (known.some((room) => room.id === chosen)) rooms.value = chosen;
    welcome();
  } catch (error) {
    loading = null;
    const again = button("Try again", () => show(), { picture: "again" });
    fill(hero, el("p.problem", { role: "alert" }, errorText(error)), again);
  }
}

/** Starts a chat in a room with the first words of a question, once the view is shown. Other views link here. */
export async function enter(room, words) {
  if (room && !known.some((one) => one.id === room)) await loadRooms({ afresh: true });
  restart();
  if (room) rooms.value = room;
  welcome();
  box.box.value = words;
  box.focus();
}

function welcome() {
  const room = known.find((one) => one.id === rooms.value) ?? known[0];
  const card = (one) =>
    el("button.card", { type: "button", "aria-pressed": String(one === room), onclick: () => choose(one.id) },
      el("b", {}, one.name || one.id), el("span", {}, one.description));
  const suggestion = (text) => el("button.suggestion", { type: "button", onclick: () => say(text) }, text);
  fill(hero,
    el("h1", {}, "What do you want to do?"),
    isWithoutModel && el("p.unconnected", {}, "No language model is connected. Arithmetic, time, notes and quotations from your documents ",
      "work without one. To connect one, start the gateway with ", el("code", {}, "AGENT_LLM_BASE_URL"), " and ",
      el("code", {}, "AGENT_MODEL_FAST"), "."),
    el("div.cards", { role: "group", "aria-label": "Rooms" }, known.filter((one) => one.id !== BUILDER).map(card)),
    el("div.suggestions", {}, (room?.suggestions?.length ? room.suggestions : SUGGESTIONS[room?.id] ?? []).map(suggestion)));
  hero.hidden = talk.messages.length > 0;
}

function choose(id) {
  rooms.value = id;
  welcome();
  box.focus();
}

function restart() {
  if (current) current.controller.abort();
  talk = newTalk();
  if (location.hash.startsWith("#/chat/")) history.replaceState(null, "", "#/chat");
  log.replaceChildren();
  restartable();
  welcome();
  past.refresh(talk.id);
  box.focus();
}

/** Shows an earlier chat, to be continued. */
async function reopen(id) {
  restart();
  try {
    const { messages, room } = await past.load(id);
    talk = { id, messages };
    if (known.some((one) => one.id === room)) rooms.value = room;
    for (const { role, content } of messages) {
      if (role === "user") {
        log.append(mine(content));
        continue;
      }
      const element = el("div.prose");
      markdown(element, content);
      log.append(el("article.answer", { "aria-label": "Answer" }, element));
    }
    history.replaceState(null, "", `#/chat/${encodeURIComponent(id)}`);
  } catch (error) {
    log.append(alarm(errorText(error)));
  }
  hero.hidden = log.childElementCount > 0;
  restartable();
  past.refresh(talk.id);
  stick({ now: true });
}

const mine = (text) => el("div.mine", {}, el("p", {}, text));

function restartable() {
  fresh.hidden = talk.messages.length === 0;
}

async function say(text) {
  if (current) return;
  const own = talk;
  own.messages.push({ role: "user", content: text });
  hero.hidden = true;
  restartable();
  const place = own.messages.length;
  const settled = (whole) => (own.messages[place] = { role: "assistant", content: whole });
  const reply = answer({ grown: stick, settled });
  log.append(mine(text), reply.element);
  stick({ now: true });
  current = { runId: "", controller: new AbortController() };
  box.busy(true);
  try {
    await stream(own, reply);
    settled(reply.text);
  } catch (error) {
    if (error.name === "AbortError") reply.fail(new Failure("Stopped. The run may still be in progress: see Runs."));
    else reply.fail(error, () => retry(own, place, text));
    settled(reply.text || "(no answer)");
  } finally {
    current = null;
    box.busy(false);
    past.refresh(talk.id);
  }
}

/** Removes the unanswered message and sends it again. */
function retry(own, place, text) {
  if (own !== talk || current) return;
  own.messages.length = place - 1;
  while (log.childElementCount > place - 1) log.lastChild.remove();
  say(text);
}

async function stream(own, reply) {
  const body = { model: rooms.value, messages: own.messages, stream: true, metadata: { chat_id: own.id } };
  const { signal } = current.controller;
  const response = await request("v1/chat/completions", { method: "POST", body, accept: "text/event-stream", signal });
  current.runId = response.headers.get("x-stepgate-run-id") ?? "";
  let last = null;
  for await (const { data: chunk } of events(response)) {
    if (chunk.error) throw new Failure(chunk.error.message, { code: chunk.error.code });
    const delta = chunk.choices?.[0]?.delta ?? {};
    if (chunk.event?.type === "replace") reply.replace(chunk.event.data.content);
    else if (delta.content || delta.refusal) reply.add(delta.content || delta.refusal);
    if (chunk.event?.type === "status") reply.status(chunk.event.data.description);
    if (chunk.event?.type === "source") reply.source();
    if (chunk.stepgate) last = chunk;
  }
  if (!last) throw new Failure("The connection ended before the answer was complete. The run continues: see Runs.");
  reply.finish(last.steps, last.stepgate);
}

/** Cancels the run; what is known by then is its answer. Without the permission, only the stream ends. */
async function stop() {
  const { runId, controller } = current;
  try {
    if (!runId) throw new Failure("there is no run yet");
    await post(`v1/runs/${runId}/cancel`);
  } catch {
    controller.abort();
  }
}
