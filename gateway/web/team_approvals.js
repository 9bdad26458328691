/** The inbox: what agents ask before they go on, and since when. */

import { approval } from "./answer.js";
import { get, post } from "./api.js";
import { el, fill, groupBy, moment } from "./dom.js";
import { showMarkdown } from "./html.js";

const LOOK_MS = 15_000;
let counted = null;
let known = null; // what waited at the last look
let inbox = null; // { stage, head } of the view, once it was shown

/** Calls `draw(number)` with how many questions are open, again and again. */
export function watchApprovals(draw) {
  const look = () => (document.hidden && !mayNotify()) || lookAgain().catch(() => draw(0));
  look();
  if (counted) return; // watched already, with another key
  counted = draw;
  setInterval(look, LOOK_MS);
  document.addEventListener("visibilitychange", look);
}

/** Looks what waits, and shows it where the view is open and something has changed. */
async function lookAgain() {
  const before = known;
  const data = await list({ quiet: true });
  const isSame = before?.size === known.size && data.every((one) => before.has(one.id));
  if (!isSame && inbox?.head.checkVisibility()) show(inbox.stage, data);
}

async function list({ quiet = false } = {}) {
  const { data } = await get("v1/approvals", { quiet });
  counted?.(data.length);
  const before = known;
  known = new Set(data.map((one) => one.id));
  if (before) data.filter((one) => !before.has(one.id)).forEach(notify); // at the first look the person sees the number
  return data;
}

const mayNotify = () => window.Notification?.permission === "granted";

/** Tells a person who looks elsewhere, if they have allowed it. */
function notify(one) {
  if (document.hasFocus() || !mayNotify()) return;
  const note = new Notification("Stepgate waits for you", { body: one.reason || one.room, tag: one.id });
  note.onclick = () => {
    window.focus();
    location.hash = "#/team/approvals";
  };
}

export async function approvals(stage) {
  show(stage, await list());
}

function show(stage, data) {
  const runs = groupBy(data, (one) => one.run_id);
  inbox = { stage, head: el("h1", {}, "Approvals") };
  fill(stage,
    inbox.head,
    runs.size ? el("ul.cardlist", {}, [...runs].map(([runId, asked]) => question(runId, asked, stage)))
      : el("p.quiet", {}, "Nothing waits for you. What an agent may not do without a person is asked here and in its chat."),
    asksToNotify());
}

function question(runId, asked, stage) {
  const prose = el("div.prose");
  showMarkdown(prose, asked[0].question);
  const ids = asked.map((one) => one.id);
  const buttons = approval(async (verb) => {
    await post(`v1/runs/${runId}/${verb}`, { approvals: ids });
    await approvals(stage);
    inbox.head.after(el("p.quiet", { role: "status" }, `${verb === "approve" ? "Approved" : "Rejected"}: `, el("a", { href: `#/runs/${runId}` }, asked[0].title || "the run")));
  });
  return el("li.cardrow", {}, el("div", {},
    asked[0].title && el("b.cut", {}, asked[0].title),
    el("p.facts", {}, asked[0].owner !== "local" && el("span", {}, `asked by ${asked[0].owner}`), el("span", {}, `room ${asked[0].room}`), el("span", {}, `since ${moment(asked[0].asked_at)}`), el("span", {}, `until ${moment(asked[0].expires_at)}`), el("a", { href: `#/runs/${runId}` }, "Open the run")),
    prose, buttons));
}

function asksToNotify() {
  if (!window.Notification || Notification.permission !== "default") return null;
  const press = el("button.button", { type: "button", onclick: async () => (await Notification.requestPermission(), press.remove()) }, "Notify me in this browser");
  return el("div.row", {}, press);
}
