/** The inbox: what agents ask before they go on, of whom and since when. The list is stable: nothing that a person is about
 * to press moves away, and what comes in is added at its end. */

import { me, personOf, readsAll } from "./access.js";
import { approval } from "./answer.js";
import { get, post } from "./api.js";
import { attempt, count, el, fill, groupBy, moment } from "./dom.js";
import { showMarkdown } from "./html.js";

const LOOK_MS = 15_000;
const MAY_BE_CUT = 150; // runs in an answer: the gateway lists those of the newest 200 that have not expired
let counted = null;
let waiting = []; // the open questions by the newest look, those that wait longest first
let known = null; // their ids; null before the first look
let inbox = null; // the open view, once it was shown
let everybody = false; // also what others are asked, for who may read it
let [looks, newest] = [0, 0]; // the number of the last look, and of the first whose answer still counts

/** Calls `draw(number)` with how many questions are open, again and again. */
export function watchApprovals(draw) {
  const again = () => (document.hidden && !mayNotify()) || look({ quiet: true }).catch(() => {}); // not known is not none
  startAfresh(); // another key may read other questions
  again();
  if (counted) return; // watched already, with another key
  counted = draw;
  setInterval(again, LOOK_MS);
  document.addEventListener("visibilitychange", again);
}

/** Ignores the answers to looks that were sent before now. */
const ignoreSent = () => (newest = looks + 1);

/** What the next look lists is not new, and what it leaves out was not decided. */
function startAfresh() {
  ignoreSent();
  known = null;
}

/** Looks what waits, and shows it where the view is open. An answer that comes after that of a later look is ignored. */
async function look({ quiet = false } = {}) {
  const number = (looks += 1);
  const owner = everybody && (await readsAll({ quiet })) ? "?owner=*" : "";
  const data = (await get(`v1/approvals${owner}`, { quiet })).data.reverse();
  if (number < newest) return;
  newest = number;
  waiting = data;
  const { owner: mine } = everybody ? await me() : {};
  const own = everybody ? data.filter((one) => one.owner === mine) : data; // what others are asked, they decide
  counted?.(own.length);
  const before = known;
  known = new Set(own.map((one) => one.id));
  if (before) notify(own.filter((one) => !before.has(one.id))); // at the first look the person sees the number
  if (inbox?.head.checkVisibility()) inbox.update(data);
}

const mayNotify = () => window.Notification?.permission === "granted";

/** Tells a person who looks elsewhere, if they have allowed it; of several questions at once in one notification. */
function notify(asked) {
  if (!asked.length || document.hasFocus() || !mayNotify()) return;
  const body = asked.length > 1 ? count(asked.length, "question") : asked[0].reason || asked[0].room;
  const note = new Notification("Stepgate is waiting for you", { body, tag: asked[0].id });
  note.onclick = () => {
    window.focus();
    location.hash = "#/team/approvals";
  };
}

export async function approvals(stage) {
  const [, { owner }, isForAll] = await Promise.all([look(), me(), readsAll()]);
  const again = ({ currentTarget: at }) => {
    everybody = at.checked;
    startAfresh();
    inbox.clear();
    attempt(at.parentNode, look);
  };
  inbox = makeInbox(owner);
  fill(stage, inbox.head,
    isForAll && el("div.row", {}, el("label.check", {}, el("input", { type: "checkbox", checked: everybody, onchange: again }), "All owners")),
    inbox.lead, inbox.rows, asksToNotify());
  inbox.update(waiting);
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
    for (const [ids, asked] of open) if (!cards.has(ids)) add(ids, asked);
    removeMissing([...cards].filter(([ids]) => !open.has(ids)), groups.size >= MAY_BE_CUT);
    say(data.length ? `${count(data.length, "question")} ${data.length === 1 ? "waits" : "wait"}, since ${moment(data[0].asked_at)}.`
      : "Nothing is waiting for you. When an agent needs a person's permission, it asks here and in its chat.");
  }

  /** Closes cards whose questions are not listed; where the list may be cut, only those that their run no longer asks. */
  async function removeMissing(missing, isCut) {
    for (const [ids, card] of missing) {
      if (!card.isOpen() || (isCut && (await card.isAsked()))) continue;
      if (card.close("No longer open") && cards.get(ids) === card) cards.delete(ids); // the run may ask it again, with other questions meanwhile
    }
  }

  function add(ids, asked) {
    const card = question(asked, mine);
    cards.set(ids, card);
    rows.append(card.element);
  }

  /** A line that is the same is not read out again. */
  function say(line) {
    if (lead.textContent !== line) lead.textContent = line;
  }

  function clear() {
    cards.clear();
    rows.replaceChildren();
    say("Looking …");
  }

  return { head, lead, rows, update, clear };
}

/** The card of all that one run asks at once. */
function question(asked, mine) {
  const { run_id: runId, title, owner, room, asked_at: since } = asked[0];
  const until = asked.map((one) => one.expires_at).sort()[0];
  const ids = asked.map((one) => one.id);
  // Each is rendered by itself: what one holds cannot hide the next.
  const texts = asked.flatMap((one, at) => [at > 0 && el("hr"), markdownBox(one.question)]);
  const element = el("li.cardrow");
  let state = "open"; // or "deciding", "closed"
  const isMine = !mine || owner === mine;
  const buttons = isMine && approval(async (verb) => {
    state = "deciding";
    try {
      await post(`v1/runs/${runId}/${verb}`, { approvals: ids });
    } catch (error) {
      state = "open";
      throw error;
    }
    state = "open";
    close(verb === "approve" ? "Approved" : "Rejected", { takesFocus: true });
    ignoreSent(); // they may list what is decided now
    await look().catch(() => {}); // the next look says it
  });

  /** Says what became of it, in a card of the same height: nothing moves under the pointer. Whether it was open. */
  function close(word, { takesFocus = false } = {}) {
    if (state !== "open") return false;
    state = "closed";
    const at = document.activeElement;
    const isFocused = element.contains(at) || (takesFocus && at === document.body); // a disabled button loses it
    element.style.minHeight = `${element.offsetHeight}px`;
    element.tabIndex = -1;
    fill(element, el("p.quiet", { role: "status" }, `${word}: `, el("a.needs-agent", { href: `#/runs/${runId}` }, title || "the run")));
    if (isFocused) element.focus({ preventScroll: true });
    return true;
  }

  /** Whether its run still asks it; also if the run cannot be read. */
  async function isAsked() {
    const run = await get(`v1/runs/${runId}`, { quiet: true }).catch(() => null);
    if (!run) return true;
    const open = run.status === "awaiting_approval" ? (run.response.metadata.approvals ?? []) : [];
    return ids.every((id) => open.some((one) => one.approval_id === id));
  }

  fill(element, el("div", {},
    title && el("b.cut", { dir: "auto" }, title),
    el("p.facts", {}, owner !== mine && el("span", {}, `asked by ${personOf(owner)}`), el("span", {}, `room ${room}`), el("span", {}, `since ${moment(since)}`), el("span", {}, `until ${moment(until)}`), el("a.needs-agent", { href: `#/runs/${runId}` }, "Open the run")),
    el("div.prose", {}, texts), buttons || el("p.quiet", {}, `${personOf(owner)} decides.`)));
  return { element, close, isAsked, isOpen: () => state === "open" };
}

function markdownBox(text) {
  const box = el("div");
  showMarkdown(box, text);
  return box;
}

function asksToNotify() {
  if (!window.Notification || Notification.permission !== "default") return null;
  const press = el("button.button", { type: "button", onclick: async () => (await Notification.requestPermission(), press.remove()) }, "Notify me in this browser");
  return el("div.row", {}, press);
}
