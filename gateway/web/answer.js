/** One answer: its text, its steps in a collapsed list, its sources, and the question of a waiting run. It shows a `view`
 * of a run as the gateway makes it, whether the run has ended or is followed while it is worked on. */

import { may } from "./access.js";
import { announce, setBusy } from "./announce.js";
import { errorText, plain, post, sentence } from "./api.js";
import { button, el, fill, icon, moveFocus } from "./dom.js";
import { foldable } from "./folding.js";
import { OPEN } from "./follow.js";
import { copy, growing, showHtml } from "./html.js";
import { citing, sourceRow } from "./panel.js";
import { headline, trace } from "./trace.js";

/** An answer. `actions` are further buttons below it; `grown()` is called after each change of its size; `again()` sends
 * its question again, after a failure. */
export function answer({ actions = [], grown = () => {}, again = null } = {}) {
  const replies = el("div.replies");
  const prose = el("div.prose");
  const now = el("span", {}, "Reading your message");
  const lines = el("ol.trace");
  const pulse = el("span.pulse");
  const fold = el("details.steps", {}, el("summary", {}, pulse, now), lines);
  const thoughts = el("p.plaintext", { dir: "auto" });
  const thought = el("details.thought", { hidden: true }, el("summary", {}, "What the model thought"), thoughts);
  const cited = el("div");
  const after = el("div.after");
  const tools = el("div.tools", { hidden: true });
  const element = el("article.answer", { "aria-label": "Answer" }, el("h2.hidden", {}, "Answer"), replies, fold, thought, prose, cited, after, tools);
  setBusy(element, true);
  const unfolded = new Set();
  const grow = growing(prose);
  let [text, seq] = ["", null];
  let decided = "";
  let asked = [];
  let isFollowed = false; // what has ended long ago is no news

  const press = el("button.tool", { type: "button", title: "Copy answer", "aria-label": "Copy answer", onclick: () => copy(text, press) }, icon("copy"));

  const self = {
    element,
    get text() {
      return text;
    },
    /** Up to where the run is shown; null if this page failed. */
    get seq() {
      return seq;
    },
    /** The ids of the approvals whose question is displayed. */
    get approvals() {
      return after.querySelector(".decision") ? asked : [];
    },
    /** Says in a line what is being done. */
    progress({ text: line }) {
      isFollowed = true;
      tell(line);
      grown();
    },
    /** Shows blocks of the answer so far. */
    blocks(frame) {
      if (frame.restart) showThought(frame.thought);
      grow(frame);
      grown();
    },
    /** Adds to what the model thinks before it answers. */
    thought({ text: piece }) {
      showThought(thoughts.textContent + piece);
      grown();
    },
    /** Says that the connection is lost, or back. */
    lost(isLost) {
      element.classList.toggle("lost", isLost);
      if (isLost) tell("Connection lost; trying again. Nothing will be missed");
    },
    /** Shows everything that is known about the run. */
    view(view) {
      const { status, steps, metadata } = view;
      const isOpen = OPEN.has(status);
      const isAsked = status === "awaiting_approval" && metadata.approvals?.length > 0;
      setBusy(element, isOpen && !isAsked);
      element.dataset.status = status;
      self.lost(false);
      [text, seq] = [view.text, view.seq];
      fold.hidden = false;
      moveFocus(after, element); // what was decided goes
      if (replies.childElementCount !== view.replies.length)
        fill(replies, view.replies.map((words) => el("div.asked", {}, foldable(el("div.mine", { dir: "auto" }, el("p", {}, words)), words))));
      if (!isOpen) showThought(view.thought);
      if (view.html !== null) showHtml(prose, view.html, citing(metadata));
      else if (!isOpen) fill(prose, !metadata.failure && text && el("p.plaintext", { dir: "auto" }, text));
      if (!isOpen || isAsked) tell(summary(view));
      fold.classList.toggle("over", !isOpen || isAsked);
      fill(lines, ...trace(steps, unfolded).childNodes, el("li.line.needs-agent", {}, el("a", { href: `#/runs/${view.run_id}` }, "Open the run with its plan")));
      fill(cited, !isOpen && sourceRow(metadata));
      if (metadata.failure) fill(after, failed(metadata.failure, again));
      else fill(after, !isOpen && notes(view), isAsked && question(view));
      tools.hidden = isOpen;
      fill(tools, !metadata.failure && [text && press, actions], stamp(view)); // a failure has a button that tries again
      grown();
    },
    /** Shows a failure of this page, such as one to send the message. */
    fail(error) {
      setBusy(element, false);
      fold.classList.add("over");
      [fold.hidden, seq] = [true, null];
      fill(after, alarm(errorText(error)), again && el("div.row", {}, button("Try again", again, { picture: "again" })));
      grown();
    },
  };

  /** Says in a line what is being done, or what came of it. */
  function tell(line) {
    now.textContent = line;
    if (isFollowed) announce(line);
  }

  function showThought(words) {
    thoughts.textContent = words;
    thought.hidden = !words.trim();
  }

  /** The buttons of a waiting run; a question that was just answered is not shown again. */
  function question({ run_id: runId, metadata }) {
    const ids = (asked = metadata.approvals.map((one) => one.approval_id));
    if (decided === ids.join()) return el("p.quiet", {}, "Continuing …");
    return approval(async (verb) => {
      decided = ids.join(); // before the request: the run may have ended when it is answered
      try {
        await post(`v1/runs/${runId}/${verb}`, { approvals: ids });
      } catch (error) {
        decided = "";
        throw error;
      }
    }, { canChange: true });
  }

  return self;
}

/** A prominent error message. */
export const alarm = (text) => el("div.banner.blocking", { role: "alert" }, icon("warning"), el("p", {}, plain(text)));

/** The buttons of a run that waits for a person; a caller who may not decide reads who may. Calls `decided(verb)`. */
export function approval(decided, { canChange = false } = {}) {
  const choose = (verb) => async (event) => {
    const press = event.currentTarget;
    const box = press.closest(".decision");
    moveFocus(press, box); // what is disabled loses it
    for (const one of box.querySelectorAll("button")) one.disabled = true;
    try {
      await decided(verb);
    } catch (error) {
      box.append(el("p.problem", { role: "alert" }, errorText(error)));
      for (const one of box.querySelectorAll("button")) one.disabled = false;
      moveFocus(box, press);
    }
  };
  const element = el("div.decision", { role: "group", "aria-label": "Approval" },
    button("Approve", choose("approve"), { kind: "primary", picture: "done" }),
    button("Reject", choose("reject"), { picture: "close" }),
    canChange && el("span.quiet", {}, "or write what should change"));
  may("approve").then((is) => is || fill(element, el("span", {}, "It is waiting for someone whose key has the scope “approve”.")));
  return element;
}

/** What became of a run, as one line. */
function summary({ status, steps, metadata }) {
  if (status === "cancelled") return metadata.stopped ? "Stopped" : "Stopped before an answer";
  if (status === "failed") return "Failed";
  return headline(steps, metadata);
}

/** A mark for an answer that is not whole. */
function stamp({ status, html, metadata }) {
  if (metadata.failure && html !== null) return el("span.tag.notable", {}, "broke off");
  if (status !== "cancelled") return null;
  return el("span.tag.notable", {}, metadata.stopped ? "stopped" : "stopped before an answer");
}

function failed(failure, again) {
  return [alarm(failure.message), again && el("div.row", {}, button("Try again", again, { picture: "again" }))];
}

/** The uncertainties of an answer, and why it is not a whole one unless its own text says so. */
function notes({ text, metadata }) {
  const { uncertainties = [], status, stopped, truncated, reason = "", repeats_itself: repeats } = metadata;
  const said = uncertainties.map((one) => el(`li.${one.level}`, {}, sentence(one.message)));
  const isPartial = (status === "partial" || status === "aborted") && !stopped;
  const isSaid = reason && text.toLowerCase().includes(reason.toLowerCase());
  const why = !truncated ? isPartial && !isSaid && (reason ? `${sentence(reason)}.` : "This answer is not complete.")
    : repeats ? "This answer was cut off: the model began to repeat itself."
    : "This answer was cut off: it reached the model's longest reply or the token budget of this room.";
  if (why) said.unshift(el("li.notable", {}, why));
  return said.length ? el("ul.notes", {}, said) : null;
}
