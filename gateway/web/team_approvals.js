/** The inbox: what agents ask before they go on, of whom and since when. The list is stable: nothing that a person is about
 * to press moves away, and what comes in is added at its end. */

import { me, personOf, readsAll } from "./access.js";
import { approval } from "./answer.js";
import { get, post } from "./api.js";
import { attempt, count, el, fill, groupBy, moment } from "./dom.js";
import { showMarkdown } from "./html.js";

const LOOK_MS = 15_000;
let counted = null;
let known = null; // what waited at the last look
let inbox = null; // the open view, once it was shown
let everybody = true; // also what others are asked, for who may read it

/** Calls `draw(number)` with how many questions are open, again and again. */
export function watchApprovals(draw) {
  const look = () => (document.hidden && !mayNotify()) || lookAgain().catch(() => draw(0));
  look();
  if (counted) return; // watched already, with another key
  counted = draw;
  setInterval(look, LOOK_MS);
  document.addEventListener("visibilitychange", look);
}

/** Looks what waits, and shows it where the view is open. */
async function lookAgain() {
  const data = await list({ quiet: true });
  if (inbox?.head.checkVisibility()) inbox.update(data);
}

/** The open questions, those that wait longest first. */
async function list({ quiet = false } = {}) {
  const owner = everybody && (await readsAll()) ? "?owner=*" : "";
  const data = (await get(`v1/approvals${owner}`, { quiet })).data.reverse();
  counted?.(data.length);
  const before = known;
  known = new Set(data.map((one) => one.id));
  if (before) notify(data.filter((one) => !before.has(one.id))); // at the first look the person sees the number
  return data;
}

const mayNotify = () => window.Notification?.permission === "granted";

/** Tells a person who looks elsewhere, if they have allowed it; of several questions at once in one notification. */
function notify(asked) {
  if (!asked.length || document.hasFocus() || !mayNotify()) return;
  const body = asked.length > 1 ? count(asked.length, "question") : asked[0].reason || asked[0].room;
  const note = new Notification("Stepgate waits for you", { body, tag: asked[0].id });
  note.onclick = () => {
    window.focus();
    location.hash = "#/team/approvals";
  };
}

export async function approvals(stage) {
  const [data, { owner }, isForAll] = await Promise.all([list(), me(), readsAll()]);
  const again = ({ currentTarget: at }) => {
    everybody = at.checked;
    known = null; // what is not listed any longer was not decided
    attempt(at, () => approvals(stage));
  };
  inbox = makeInbox(owner);
  fill(stage, inbox.head,
    isForAll && el("div.row", {}, el("label.check", {}, el("input", { type: "checkbox", checked: everybody, onchange: again }), "All owners")),
    inbox.lead, inbox.rows, asksToNotify());
  inbox.update(data);
}

/** The list of questions; `mine` is who looks. */
function makeInbox(mine) {
  const head = el("h1", {}, "Approvals");
  const lead = el("p.quiet", { role: "status" });
  const rows = el("ul.cardlist");
  const cards = new Map(); // the ids that are decided together -> their card

  /** Adds what is new; says of a card whose question is no longer open that it is not. */
  function update(data) {
    const groups = groupBy(data, (one) => one.run_id);
    const open = new Map([...groups.values()].map((asked) => [asked.map((one) => one.id).join(), asked]));
    for (const [ids, asked] of open) if (!cards.has(ids)) rows.append(add(ids, asked));
    for (const [ids, card] of cards) if (!open.has(ids)) card.close("No longer open");
    fill(lead, open.size ? [`${count(open.size, "question")} ${open.size === 1 ? "waits" : "wait"}, since ${moment(data[0].asked_at)}.`]
      : "Nothing waits for you. What an agent may not do without a person is asked here and in its chat.");
  }

  function add(ids, asked) {
    const made = question(asked, mine, () => list().then(update));
    cards.set(ids, made);
    return made.element;
  }

  return { head, lead, rows, update };
}

/** The card of what one run asks at once. Calls `decided()` after a decision. */
function question(asked, mine, decided) {
  const { run_id: runId, title, owner, room, asked_at: since, expires_at: until, question: text } = asked[0];
  const prose = el("div.prose");
  showMarkdown(prose, text);
  const element = el("li.cardrow");
  let isClosed = false;
  const buttons = approval(async (verb) => {
    await post(`v1/runs/${runId}/${verb}`, { approvals: asked.map((one) => one.id) });
    close(verb === "approve" ? "Approved" : "Rejected");
    element.focus(); // the next question is one Tab away
    await decided().catch(() => {}); // the next look says it
  });
  const close = (word) => {
    if (isClosed) return;
    isClosed = true;
    element.tabIndex = -1;
    fill(element, el("p.quiet", { role: "status" }, `${word}: `, el("a", { href: `#/runs/${runId}` }, title || "the run")));
  };
  fill(element, el("div", {},
    title && el("b.cut", { dir: "auto" }, title),
    el("p.facts", {}, owner !== mine && el("span", {}, `asked by ${personOf(owner)}`), el("span", {}, `room ${room}`), el("span", {}, `since ${moment(since)}`), el("span", {}, `until ${moment(until)}`), el("a", { href: `#/runs/${runId}` }, "Open the run")),
    prose, buttons));
  return { element, close };
}

function asksToNotify() {
  if (!window.Notification || Notification.permission !== "default") return null;
  const press = el("button.button", { type: "button", onclick: async () => (await Notification.requestPermission(), press.remove()) }, "Notify me in this browser");
  return el("div.row", {}, press);
}
