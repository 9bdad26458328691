/** Chat with any room through /v1/chat/completions, with streamed answers. */

import { answer } from "./answer.js";
import { events, Failure, get, post, request, errorText } from "./api.js";
import { composer } from "./composer.js";
import { button, el, fill, pinned } from "./dom.js";

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

export const view = el("section.view.chat", { "aria-label": "Chat" }, scroll, el("div.dock", {}, box.element));

const stick = pinned(scroll);
let talk = { messages: [] };
let current = null; // { runId, controller } while an answer comes
let known = [];

export async function show() {
  restartable();
  box.focus();
  if (known.length) return;
  try {
    known = (await get("v1/models")).data;
    fill(rooms, known.map((room) => el("option", { value: room.id }, room.name || room.id)));
    rooms.addEventListener("change", welcome);
    welcome();
  } catch (error) {
    fill(hero, el("p.problem", { role: "alert" }, errorText(error)), button("Try again", show, { picture: "again" }));
  }
}

/** Starts a chat in a room with the first words of a question. Other views link here. */
export async function enter(room, words) {
  await show();
  restart();
  rooms.value = room;
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
    el("div.cards", { role: "group", "aria-label": "Rooms" }, known.filter((one) => one.id !== BUILDER).map(card)),
    el("div.suggestions", {}, (SUGGESTIONS[room?.id] ?? []).map(suggestion)));
  hero.hidden = talk.messages.length > 0;
}

function choose(id) {
  rooms.value = id;
  welcome();
  box.focus();
}

function restart() {
  if (current) current.controller.abort();
  talk = { messages: [] };
  log.replaceChildren();
  restartable();
  welcome();
  box.focus();
}

function restartable() {
  fresh.hidden = talk.messages.length === 0;
}

async function say(text) {
  if (current) return;
  const mine = talk;
  mine.messages.push({ role: "user", content: text });
  hero.hidden = true;
  restartable();
  const place = mine.messages.length;
  const settled = (whole) => (mine.messages[place] = { role: "assistant", content: whole });
  const reply = answer({ grown: stick, settled });
  log.append(el("div.mine", {}, el("p", {}, text)), reply.element);
  stick({ now: true });
  current = { runId: "", controller: new AbortController() };
  box.busy(true);
  try {
    await stream(mine, reply);
    settled(reply.text);
  } catch (error) {
    if (error.name === "AbortError") reply.fail(new Failure("Stopped. The run may still be in progress: see Runs."));
    else reply.fail(error, () => retry(mine, place, text));
    settled(reply.text || "(no answer)");
  } finally {
    current = null;
    box.busy(false);
  }
}

/** Removes the unanswered message and sends it again. */
function retry(mine, place, text) {
  if (mine !== talk || current) return;
  mine.messages.length = place - 1;
  while (log.childElementCount > place - 1) log.lastChild.remove();
  say(text);
}

async function stream(mine, reply) {
  const body = { model: rooms.value, messages: mine.messages, stream: true };
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
