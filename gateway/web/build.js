/** Build: a pipeline made in a conversation. A guided start, the conversation, and its workbench. */

import { alarm, approval } from "./answer.js";
import { events, Failure, get, post, request, errorText } from "./api.js";
import { composer } from "./composer.js";
import { deliver } from "./delivery.js";
import { button, count, el, fill, framed, icon, moment, pause, pinned, words } from "./dom.js";
import { guide } from "./guide.js";
import { showMarkdown } from "./html.js";
import { workbench } from "./pipeline.js";
import { sign } from "./trace.js";

const API = "api/v2/agent/conversations";

const list = el("ul.items");
const stage = el("div.stage");
export const view = el("section.view.split.build", { "aria-label": "Build" },
  el("nav.side", { "aria-label": "Conversations" },
    el("div.head", {}, el("h2", {}, "Conversations"),
      el("a.button.plain", { href: "#/build", title: "New conversation" }, icon("plus", "New conversation"))),
    el("div.scroll", {}, list)), stage);

const first = new Map(); // what a conversation that was just made begins with
let shown = null;
let lead = () => {};

/** The target of "Ask about it". */
export const leadTo = (go) => (lead = go);

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
    fill(stage, el("div.scroll", {}, el("p.problem", { role: "alert" }, errorText(error))));
  }
}

function begin(id, opening) {
  first.set(id, opening);
  location.hash = `#/build/${id}`;
}

async function refresh() {
  try {
    const unnamed = { data: [] }; // a key may have no right to the sources
    const [{ data }, sources] = await Promise.all([get(`${API}?limit=50`), get("v1/sources").catch(() => unnamed)]);
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
  const bench = workbench({ conversationId: id, asked: (collection) => lead(collection), changed: look, say });
  const dock = el("div.dock", {}, stick.down, box.element);
  const element = el("div.talk", {}, el("div.words", {}, scroll, dock), bench.element);
  let isBusy = false;
  let running = "";
  let asked = []; // ids of the approvals whose question is displayed

  async function load() {
    const detail = await get(`${API}/${id}`);
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

  /** Polls for an answer that another client has requested, or whose stream was cut, and shows what was said until then. */
  async function catchUp() {
    const work = log.appendChild(activity());
    for (; element.isConnected; await pause(1500)) {
      const detail = await get(`${API}/${id}`).catch((error) => {
        if (error.code !== "unreachable") throw error;
      });
      if (detail) known(detail);
      if (!detail || (detail.run_id && !detail.question)) continue;
      log.replaceChildren();
      history(detail);
      stick();
      break;
    }
    work.remove();
  }

  function history({ messages, messages_note: note, question, approvals, summary }) {
    let work = null;
    asked = approvals;
    if (summary && (note || !messages.length)) log.append(theirs(`**What is known so far**\n\n${listed(summary)}`));
    if (note) log.append(el("p.quiet", {}, note));
    for (const message of messages) {
      if (message.role === "tool" || message.role === "subagent") {
        work ??= log.appendChild(activity());
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

  const ask = () => {
    const box = approval((verb) => say(verb), { canChange: true });
    return box;
  };

  async function send(text) {
    if (await say(text)) return;
    box.box.value = [text, box.box.value].filter(Boolean).join("\n\n");
    box.grow();
  }

  /** Sends a message and shows its answer. Returns whether it was sent. */
  async function say(text) {
    if (isBusy) return false;
    isBusy = true;
    box.busy(true);
    const approvals = asked;
    asked = [];
    for (const question of log.querySelectorAll(".decision")) question.remove(); // these words answer it
    const work = activity();
    const prose = el("div.prose");
    const reply = el("article.answer", { "aria-busy": "true", "aria-label": "Answer" }, work, prose);
    log.append(mine(text), reply);
    stick({ now: true });
    try {
      await stream({ message: text, approvals }, { work, prose, reply });
      return true;
    } catch (error) {
      asked = approvals;
      return await recover(error, text, reply);
    } finally {
      reply.setAttribute("aria-busy", "false");
      work.over();
      isBusy = false;
      box.busy(false);
      stick();
      running = "";
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
    try {
      if (running) await post(`v1/runs/${running}/cancel`);
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
    button("Ask about it", () => lead(collection), { kind: "primary", picture: "send" }), again);
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

/** Returns the lines of a summary as a Markdown list. */
const listed = (summary) => summary.split("\n").map((line) => (line.startsWith("- ") ? `  ${line}` : `- ${line}`)).join("\n");

const mine = (text) => el("div.mine", { dir: "auto" }, el("p", {}, text));

function theirs(text) {
  const prose = el("div.prose");
  showMarkdown(prose, text);
  return el("article.answer", { "aria-label": "Answer" }, prose);
}

/** The activity before an answer: tools and sub-agents, one line each, updated until it has ended. */
function activity() {
  const now = el("span", { role: "status" }, "Thinking");
  const lines = el("ol.trace");
  const fold = el("details.steps", {}, el("summary", {}, el("span.pulse"), now), lines);
  const open = new Map();
  fold.line = (name, status, content, tool = "") => {
    const state = { started: "running", working: "running" }[status] ?? status;
    const row = el("li", {},
      el("div.line", {}, sign(state), el("span.name", {}, words(name)), tool && el("span.quiet", {}, words(tool))),
      content && el("div.inside", {}, el("pre", { tabIndex: 0, dir: "auto" }, content)));
    if (open.has(name)) open.get(name).replaceWith(row);
    else lines.append(row);
    if (state === "running") open.set(name, row);
    else open.delete(name);
    now.textContent = `${words(name)}${tool ? `: ${words(tool)}` : ""}`;
  };
  fold.over = () => {
    fold.classList.add("over");
    fold.hidden = !lines.childElementCount;
    now.textContent = `${count(lines.childElementCount, "thing")} done`;
  };
  return fold;
}
