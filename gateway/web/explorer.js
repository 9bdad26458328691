/** The explorer of one run: plan, answer, citations and trace. Updates while the run is in progress. */

import { me, personOf } from "./access.js";
import { alarm, approval } from "./answer.js";
import { get, post, errorText } from "./api.js";
import { isChat } from "./conversation.js";
import { button, count, el, fill, moment, money, seconds, stateOf, words } from "./dom.js";
import { foldable } from "./folding.js";
import { follow, OPEN } from "./follow.js";
import { growing, showHtml } from "./html.js";
import { citationList, citing } from "./panel.js";
import { viewOf } from "./parts.js";
import { graph } from "./plan.js";
import { runActions } from "./run_actions.js";
import { lasted, timeline } from "./timeline.js";
import { trace } from "./trace.js";

/** Shows a run in `stage` and follows it until it ends or `signal` aborts. Calls `named(title)` once it is there, and
 * `changed()` when it has ended. */
export async function explore(stage, id, { signal, changed, named = () => {}, offers = () => null }) {
  try {
    const [{ owner }, found] = await Promise.all([me(), look(id, signal)]);
    let run = found;
    const isMine = !owner || run.owner === owner;
    const page = layout(id, offers, isMine);
    fill(stage, page.element);
    page.paint(run);
    named(run.title);
    let newest = 0;
    const seen = async (known) => {
      const number = (newest += 1);
      page.read(known);
      if (!OPEN.has(run.status)) return; // nothing changes, least of all what a person has opened or written
      const later = await look(id, signal);
      if (number < newest) return; // a later look is on its way
      const hasEnded = OPEN.has(run.status) && !OPEN.has(later.status);
      run = later;
      page.paint(run);
      if (hasEnded) changed();
    };
    const view = (known) => seen(known).catch(() => {}); // the next one, or the end, shows it
    await follow(`v1/runs/${id}/events?render=html`, { view, blocks: page.write }, signal);
  } catch (error) {
    if (error.name !== "AbortError") fill(stage, el("div.scroll", {}, el("div.column.run", {}, back(), alarm(errorText(error)))));
  }
}

const look = (id, signal) => get(`v1/runs/${id}`, { signal });
const back = () => el("a.back", { href: "#/runs" }, "All runs");

/** The sections of the page; their contents change, they do not. Another owner's run is read, not acted on. */
function layout(id, offers, isMine) {
  const unfolded = new Set();
  const head = el("header");
  const question = el("div");
  const prose = el("div.prose");
  const stop = button("Stop", () => post(`v1/runs/${id}/cancel`).catch((error) => {
    if (error.status !== 409) throw error; // else it has ended meanwhile
  }), { picture: "stop" });
  const part = (title, inner) => el("section", { hidden: true }, el("h2", {}, title), inner);
  const [request, plan, answer, sources, times, happened, sent, again] = [
    part("Request", el("div")), part("Plan", el("div")), part("Answer", prose), part("Citations", el("div")), part("Time", el("div")), part("Trace", el("div")),
    part("What models were sent", el("div")), part("Use it again", el("div")),
  ];
  const element = el("div.scroll", {}, el("div.column.run", {},
    back(), head, el("div.row", {}, stop), request, plan, answer, question, sources, times, happened, sent, again));
  let isAsked = "";
  let hasPrompts = false;
  const grow = growing(prose);

  function put(section, ...content) {
    const at = document.activeElement?.closest?.("[data-id]")?.dataset.id;
    section.hidden = !content.some(Boolean);
    fill(section.lastChild, ...content);
    if (at) section.querySelector(`[data-id="${CSS.escape(at)}"] > summary`)?.focus({ preventScroll: true });
  }

  function paint(run) {
    const { metadata, steps } = run.response;
    const asked = run.status === "awaiting_approval" ? (metadata.approvals ?? []) : [];
    const ids = asked.map((one) => one.approval_id);
    fill(head, el("h1", { dir: "auto" }, run.title || "(no words)"), facts(run, isMine), !OPEN.has(run.status) && offers(run.id));
    stop.parentNode.hidden = !isMine || !["queued", "running"].includes(run.status);
    const decide = (verb) => post(`v1/runs/${id}/${verb}`, { approvals: ids });
    if (isAsked !== ids.join()) fill(question, ids.length > 0 && (isMine ? approval(decide) : el("p.quiet", {}, `It is waiting for ${personOf(run.owner)}.`)));
    isAsked = ids.join();
    answer.firstChild.textContent = ids.length ? "What is asked" : "Answer";
    if (request.hidden && run.prompt.trim() !== run.title) put(request, foldable(el("p.plaintext", { dir: "auto" }, run.prompt), run.prompt));
    const plain = run.plan?.steps.length === 1 && run.plan.steps[0].action === "completion";
    put(plan, ...(run.plan && !plain ? [madeOf(run.plan, metadata), graph(run.plan.steps, statesOf(steps), reveal)] : []));
    put(times, timeline(run, reveal));
    put(sources, metadata.sources?.length > 0 && citationList(metadata));
    put(happened, steps.length > 0 && trace(steps, unfolded));
    answer.hidden = !prose.childElementCount;
    if (!OPEN.has(run.status) && run.model_calls?.length) showPrompts(run.id);
    put(again, isMine && !OPEN.has(run.status) && runActions(run));
  }

  /** Shows the prompts and replies, where the gateway keeps them. */
  async function showPrompts(runId) {
    if (hasPrompts) return;
    hasPrompts = true;
    const found = await get(`v1/runs/${runId}/prompts`).catch(() => null);
    if (!found) return; // this key may not read them
    const { days, data } = found;
    if (data.length) put(sent, data.map(prompt));
    else put(sent, el("p.quiet", {}, days ? `Prompts are kept for ${count(days, "day")}; these are gone.`
      : ["Prompts and replies are not kept here. The operator can keep them for seven days with ", el("code", {}, "AGENT_KEEP_PROMPTS=7"), "."]));
  }

  /** Opens a step's line and scrolls to it. */
  function reveal(stepId) {
    const found = [...happened.querySelectorAll("details")].filter((line) => line.dataset.step === stepId).at(-1);
    if (!found) return;
    found.open = true;
    const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    found.scrollIntoView({ block: "center", behavior: isCalm ? "auto" : "smooth" });
    found.firstChild.focus({ preventScroll: true });
  }

  function write(frame) {
    answer.hidden = false;
    grow(frame);
  }

  /** Shows the answer, or the question, of a run as the gateway has rendered it. */
  function read({ html, text, metadata }) {
    const isFailed = Boolean(text && metadata.failure);
    if (html !== null) showHtml(prose, html, citing(metadata));
    else if (isFailed) fill(prose);
    if (isFailed) prose.append(el("p.problem", {}, text));
    answer.hidden = !prose.childElementCount;
  }

  return { element, paint, write, read };
}

/** One call of a model: its messages and its reply, folded. */
function prompt({ purpose, model, messages, reply }) {
  const text = (content) => (typeof content === "string" ? content : JSON.stringify(content, null, 2));
  const said = (role, content) => el("div.fact", {}, el("span.word", {}, role), el("pre", { tabIndex: 0, dir: "auto" }, content));
  return el("details.offer", {}, el("summary", {}, `${words(purpose)} `, el("span.tag", {}, model)),
    el("div.inside.flush", {}, Array.isArray(messages) ? messages.map((one) => said(one.role, text(one.content ?? one.tool_calls ?? ""))) : said("sent", messages), said("reply", reply)));
}

function facts(run, isMine) {
  const { status, did_nothing: idle, room, owner, forked_from: origin, conversation_id: chat, created_at: created, response: { steps, metadata } } = run;
  const { usage, runtime } = metadata;
  return el("p.facts", {},
    el("span", {}, el(`span.dot.${idle ? "idle" : status}`), stateOf(status === "partial" ? { ...run, status: metadata.status } : run)),
    el("span", {}, `room ${room}`),
    owner !== "local" && el("span", {}, `for ${owner}`),
    origin && el("a", { href: `#/runs/${origin}` }, "forked from another run"),
    isMine && isChat(chat) && !viewOf(room) && el("a", { href: `#/chat/${encodeURIComponent(chat)}` }, "its chat"),
    el("span", {}, moment(created)),
    steps.length > 0 && !OPEN.has(status) && el("span", {}, seconds(lasted(run))),
    usage?.total_tokens > 0 && el("span", {}, count(usage.total_tokens, "token")),
    usage?.cost_usd > 0 && el("span", {}, money(usage.cost_usd)),
    runtime?.mode && el("span", {}, runtime.mode === "llm" ? "by a model" : "by rules"));
}

function madeOf(plan, { runtime }) {
  const by = { llm: "made by a model", rules: "made by rules", request: "given with the request" }[plan.origin];
  const parts = [count(plan.steps.length, "step"), by, plan.version > 0 && `version ${plan.version + 1}`,
    runtime?.retries > 0 && count(runtime.retries, "repeat")];
  return el("p.quiet", {}, parts.filter(Boolean).join(", "));
}

/** Returns the newest attempt of each step, from the trace. */
function statesOf(steps) {
  const attempts = steps.filter((step) => step.type === "step" || step.type === "completion");
  const state = ({ status, duration: time, attempt }) => ({ status, time, attempt });
  return new Map(attempts.map((step) => [step.step_id, state(step)]));
}
