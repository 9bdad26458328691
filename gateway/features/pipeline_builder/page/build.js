/** Build: a pipeline made in a conversation. A guided start, the conversation, and its workbench. */

import { setBusy } from "../announce.js";
import { alarm, approval } from "../answer.js";
import { events, Failure, get, post, request, errorText } from "../api.js";
import { composer } from "../composer.js";
import { deliver } from "../delivery.js";
import { askAbout } from "../documents/ask.js";
import { button, el, fill, framed, icon, moment, pause, pinned } from "../dom.js";
import { read, write } from "../drafts.js";
import { follow } from "../follow.js";
import { growing, showMarkdown } from "../html.js";
import { addStyle } from "../parts.js";
import { guide } from "./guide.js";
import { activity, growingAnswer, listed, mine, theirs } from "./messages.js";
import { workbench } from "./workbench.js";

await addStyle(import.meta.url, "build.css");

const API = "api/v2/agent/conversations";
const LOOK_MS = 5_000; // between two looks whether an answer has ended whose stream may be lost
const END_MS = 1_500; // the same once its stream has ended

const list = el("ul.items");
const stage = el("div.stage");
export const view = el("section.view.split.both.build", { "aria-label": "Build" },
  el("nav.side", { "aria-label": "Conversations" },
    el("div.head", {}, el("h2", {}, "Conversations"),
      el("a.button.plain", { href: "#/build", title: "New conversation" }, icon("plus", "New conversation"))),
    el("div.scroll", {}, list)), stage);

const first = new Map(); // what a conversation that was just made begins with
let shown = null;

export async function show(id = "") {
  refresh();
  view.classList.toggle("chosen", Boolean(id));
  if (id && shown === id) return;
  shown = id || null;
  if (!id) {
    const form = await guide(begin);
    return shown === null && fill(stage, form);
  }
  try {
    const talk = conversation(id);
    fill(stage, talk.element);
    await talk.load();
  } catch (error) {
    if (shown !== id) return;
    shown = null; // so that it is loaded when it is chosen again
    fill(stage, el("div.scroll", {}, el("div.column.run", {}, el("a.back", { href: "#/build" }, "All conversations"), alarm(errorText(error)),
      el("div.row", {}, button("Try again", () => show(id), { picture: "again" })))));
  }
}

function begin(id, opening) {
  first.set(id, opening);
  location.hash = `#/build/${id}`;
}

async function refresh() {
  try {
    const unnamed = { data: [] }; // a key may have no right to the sources
    const [{ data }, sources] = await Promise.all([get(`${API}?limit=200`), get("v1/sources").catch(() => unnamed)]);
    const names = new Map(sources.data.map((source) => [source.id, source.name]));
    fill(list, data.map((one) => item(one, names.get(one.source_id))), !data.length && el("li.quiet.pad", {}, "None yet."));
  } catch (error) {
    fill(list, el("li.problem", { role: "alert" }, errorText(error)));
  }
}

function item(one, source) {
  const about = [one.status, one.collection_id, moment(one.updated_at)].filter(Boolean).join(" · ");
  const link = { href: `#/build/${one.id}`, "aria-current": one.id === shown ? "page" : null };
  const name = shortName(source ?? one.collection_id ?? "A source");
  return el("li", {}, el("a.item", link, el("b.cut", {}, name), el("span.quiet", {}, about)));
}

const shortName = (name) => name.replace(/\/+$/, "").split("/").filter(Boolean).at(-1) ?? name;

function conversation(id) {
  const log = el("div.log", { role: "log", "aria-label": "Conversation" });
  const back = el("a.back", { href: "#/build" }, "All conversations");
  const scroll = el("div.scroll", {}, el("div.column", {}, back, log));
  const stick = pinned(scroll);
  const box = composer({ label: "Message", placeholder: "Describe a change, or ask a question", send, stop });
  box.box.addEventListener("input", () => write(id, box.box.value));
  const bench = workbench({ conversationId: id, asked: askAbout, changed: look, say });
  const dock = el("div.dock", {}, stick.down, box.element);
  const element = el("div.talk", {}, el("div.words", {}, scroll, dock), bench.element);
  let isBusy = false;
  let running = "";
  let isToStop = false; // once the run has an id
  let asked = []; // ids of the approvals whose question is displayed

  async function load() {
    const detail = await get(`${API}/${id}`);
    box.box.value = read(id);
    known(detail);
    history(detail);
    stick({ now: true });
    if (first.has(id)) {
      const opening = first.get(id);
      first.delete(id);
      await say(opening);
    } else if (detail.run_id && !detail.question) await catchUp();
    else if (detail.status === "active") box.focus();
  }

  /** Shows the stored conversation. One that has ended accepts no messages and links to its collection. */
  function known(detail) {
    bench.known(detail);
    if (detail.status !== "active") fill(dock, ended(detail));
  }

  function look() {
    refresh();
    get(`${API}/${id}`).then(known, () => {}); // what was errorText already is all that matters
  }

  /** Shows an answer that another client has requested, or whose stream was cut, as it is written, and at its end what was
   * said until then. Where its stream cannot be had either, looks tell the end. */
  async function catchUp() {
    const [wasBusy, following] = [isBusy, new AbortController()];
    const [work, prose] = [activity(), el("div.prose")];
    const reply = log.appendChild(growingAnswer(work, prose));
    let ended = null;
    let hasEnded = false;
    isBusy = true;
    box.busy(true);
    const view = ({ status }) => status === "awaiting_approval" && following.abort();
    const grow = growing(prose);
    const blocks = (frame) => (grow(frame), stick());
    const lost = (is) => is && work.progress({ text: "Connection lost; trying again. Nothing will be missed" });
    const watch = () => follow(`v1/runs/${running}/events?render=html`, { view, blocks, lost, progress: work.progress }, following.signal)
      .catch(() => {}).then(() => (hasEnded = true));
    try {
      for (; element.isConnected; await (ended && !hasEnded ? Promise.race([pause(LOOK_MS), ended]) : pause(END_MS))) {
        const detail = await get(`${API}/${id}`).catch((error) => {
          if (error.code !== "unreachable") throw error;
        });
        if (detail) known(detail);
        if (detail && (!detail.run_id || detail.question)) return redraw(detail);
        running = detail?.run_id ?? running;
        if (running) ended ??= watch();
      }
    } finally {
      following.abort();
      reply.remove();
      if (!wasBusy) settle();
    }
  }

  function redraw(detail) {
    log.replaceChildren();
    history(detail);
    stick();
  }

  function settle() {
    [isBusy, running] = [false, ""];
    box.busy(false);
    stick();
  }

  function history({ messages, messages_note: note, question, approvals, summary }) {
    let work = null;
    asked = approvals;
    if (summary && (note || !messages.length)) log.append(theirs(`**What is known so far**\n\n${listed(summary)}`));
    if (note) log.append(el("p.quiet", {}, note));
    for (const message of messages) {
      if (message.role === "tool" || message.role === "subagent") {
        work ??= log.appendChild(activity({ isPast: true }));
        const { tool_name: tool, subagent_type: agent, success } = message.metadata;
        work.line(agent ?? tool ?? message.role, success === false ? "failed" : "done", message.content);
        work.over();
        continue;
      }
      work = null;
      log.append(message.role === "user" ? mine(message.content) : theirs(message.content));
    }
    if (question && messages.at(-1)?.content !== question) log.append(theirs(question));
    if (question) log.append(ask());
  }

  const ask = () => approval((verb) => say(verb), { canChange: true });

  async function send(text) {
    write(id, "");
    if (await say(text)) return;
    box.box.value = [text, box.box.value].filter(Boolean).join("\n\n");
    write(id, box.box.value);
    box.grow();
  }

  /** Sends a message and shows its answer. Returns whether it was sent. */
  async function say(text) {
    if (isBusy) return false;
    [isBusy, isToStop] = [true, false];
    box.busy(true);
    const approvals = asked;
    asked = [];
    for (const question of log.querySelectorAll(".decision")) question.remove(); // these words answer it
    const work = activity();
    const prose = el("div.prose");
    const reply = growingAnswer(work, prose);
    log.append(mine(text), reply);
    stick({ now: true });
    try {
      await stream({ message: text, approvals }, { work, prose, reply });
      return true;
    } catch (error) {
      asked = approvals;
      return await recover(error, text, reply);
    } finally {
      setBusy(reply, false);
      work.over();
      settle();
      look();
    }
  }

  /** Shows what the conversation came to without this page: a question was asked elsewhere, or the stream was cut.
   * Returns whether the message was sent. */
  async function recover(error, text, reply) {
    const isCut = Boolean(running);
    if (isCut || error.status === 409) await catchUp().catch((failure) => log.append(alarm(errorText(failure))));
    const isSent = isCut || (error.status === 409 && error.isAgain && [...log.querySelectorAll(".mine")].at(-1)?.textContent === text);
    if (!isSent) (reply.isConnected ? reply : log).append(alarm(errorText(error)));
    return isSent;
  }

  /** Cancels the run; what is known by then is the answer. */
  async function stop() {
    if (!running) return void (isToStop = isBusy);
    try {
      await post(`v1/runs/${running}/cancel`);
    } catch (error) {
      log.lastElementChild?.append(alarm(errorText(error)));
    }
  }

  async function stream(message, { work, prose, reply }) {
    let whole = "";
    let isDone = false;
    const draw = framed(() => {
      fill(prose, el("p.plaintext", { dir: "auto" }, whole));
      stick();
    });
    const body = { ...message, stream: true };
    const response = await deliver(`${API}/${id}/messages`, body,
      (path, body, { once }) => request(path, { method: "POST", body, once, accept: "text/event-stream" }));
    running = response.headers.get("x-stepgate-run-id") ?? "";
    if (isToStop) stop();
    for await (const { data: frame } of events(response)) {
      if (frame.type === "text") {
        whole += (frame.approvals && whole ? "\n\n" : "") + frame.content;
        draw();
        if (frame.approvals?.length) reply.append(ask());
        asked = frame.approvals ?? asked;
      } else if (frame.type === "tool") work.line(frame.tool, frame.status, frame.content ?? "");
      else if (frame.type === "subagent") work.line(frame.agent, frame.status, frame.content ?? "", frame.tool);
      else if (frame.type === "uncertainty") bench.doubt(frame);
      else if (frame.type === "pipeline") bench.pipeline(frame.pipeline);
      else if (frame.type === "error") reply.append(alarm(frame.content));
      else if (frame.type === "done") isDone = true;
      stick();
    }
    if (!isDone) throw new Failure("The connection was lost.", { code: "unreachable" });
    setBusy(reply, false); // now it is read out
    await showMarkdown(prose, whole);
  }

  return { element, load };
}

/** Replaces the composer: how the conversation ended, and what can be done next. */
function ended({ id, status, collection_id: collection, current_pipeline: pipeline, source_id: source }) {
  const again = [
    pipeline && source && button("Change the pipeline", (event) => anew(id, event), {
      title: "Start another conversation with this pipeline, for another collection" }),
    el("a.button", { href: "#/build" }, "Start another"),
  ];
  if (status !== "applied" || !collection) return el("div.ended", {}, el("span", {}, `This conversation was ${status}.`), again);
  return el("div.ended", {}, el("span", {}, "This conversation has ended: its pipeline fills ", el("b", {}, collection), "."),
    button("Ask about it", () => askAbout(collection), { kind: "primary", picture: "send" }), again);
}

/** Starts a conversation from the pipeline of one that has ended. */
async function anew(id, { currentTarget: pressed }) {
  pressed.disabled = true;
  try {
    const made = await post(API, { from_conversation: id });
    location.hash = `#/build/${made.id}`;
  } finally {
    pressed.disabled = false;
  }
}
