/** One answer: its streamed text, its steps in a collapsed list, its sources, and the question of a waiting run. */

import { Failure, events, get, post, request, errorText } from "./api.js";
import { button, el, fill, framed, icon } from "./dom.js";
import { markdown } from "./markdown.js";
import { citing, sourceRow } from "./panel.js";
import { headline, trace } from "./trace.js";

export const ENDED = new Set(["run.succeeded", "run.failed", "run.cancelled"]);

/** A streamed answer. Calls `grown()` after each redraw, and `settled(text)` when a decision led to another text. */
export function answer({ grown = () => {}, settled = () => {} } = {}) {
  const prose = el("div.prose");
  const now = el("span", { role: "status" }, "Thinking");
  const lines = el("ol.trace");
  const fold = el("details.steps", {}, el("summary", {}, el("span.pulse"), now), lines);
  const cited = el("div");
  const after = el("div.after");
  const element = el("article.answer", { "aria-busy": "true", "aria-label": "Answer" }, prose, cited, fold, after);
  let text = "";
  let sources = 0;
  const draw = framed(() => {
    if (element.getAttribute("aria-busy") === "false") return;
    markdown(prose, text, (number) => (number <= sources ? () => {} : null));
    grown();
  });

  const self = {
    element,
    get text() {
      return text;
    },
    add(piece) {
      text += piece;
      draw();
    },
    replace(whole) {
      text = whole;
      draw();
    },
    status(line) {
      now.textContent = line;
      lines.append(el("li", {}, el("div.line", {}, el("span.name.aside", {}, line))));
      grown();
    },
    source() {
      sources += 1;
    },
    /** Shows the complete answer with everything known about its run. */
    finish(steps, metadata, whole = text) {
      text = whole;
      element.setAttribute("aria-busy", "false");
      markdown(prose, text, citing(metadata), { afresh: true });
      now.textContent = headline(steps, metadata);
      fold.classList.add("over");
      fill(lines, ...trace(steps).childNodes, el("li.line", {}, runLink(metadata.run_id)));
      fill(cited, sourceRow(metadata));
      fill(after, notes(metadata), decision(metadata, self, settled, () => fill(after)));
      grown();
    },
    fail(error, again = null) {
      element.setAttribute("aria-busy", "false");
      markdown(prose, text);
      fold.classList.add("over");
      fold.hidden = !lines.childElementCount;
      now.textContent = "Stopped";
      fill(after, alarm(errorText(error)), again && el("div.row", {}, button("Try again", again, { picture: "again" })));
      grown();
    },
  };
  return self;
}

/** A prominent error message. */
export const alarm = (text) => el("div.banner.blocking", { role: "alert" }, icon("warning"), el("p", {}, text));

/** The buttons of a run that waits for a person, or null. Calls `decided(verb)` with the choice. */
export function approval(decided, { canChange = false } = {}) {
  const choose = (verb) => async (event) => {
    const box = event.currentTarget.closest(".decision");
    for (const one of box.querySelectorAll("button")) one.disabled = true;
    try {
      await decided(verb);
    } catch (error) {
      box.append(el("p.problem", { role: "alert" }, errorText(error)));
      for (const one of box.querySelectorAll("button")) one.disabled = false;
    }
  };
  return el("div.decision", { role: "group", "aria-label": "Approval" },
    button("Approve", choose("approve"), { kind: "primary", picture: "done" }),
    button("Reject", choose("reject"), { picture: "close" }),
    canChange && el("span.quiet", {}, "or write what should change"));
}

/** The uncertainties of an answer. */
function notes({ uncertainties = [], status }) {
  const said = uncertainties.map((one) => el(`li.${one.level}`, {}, one.message));
  if (status === "partial" || status === "aborted") said.unshift(el("li.notable", {}, "This answer is not complete."));
  return said.length ? el("ul.notes", {}, said) : null;
}

const runLink = (runId) => el("a", { href: `#/runs/${runId}` }, "Open the run with its plan");

function decision({ approvals, run_id: runId }, self, settled, taken) {
  if (!approvals?.length) return null;
  return approval(async (verb) => {
    const { last_seq: seq } = await get(`v1/runs/${runId}`);
    await post(`v1/runs/${runId}/${verb}`, { approvals: approvals.map((one) => one.approval_id) });
    taken();
    try {
      const { response } = await goOn(runId, seq, self);
      self.finish(response.steps, response.metadata, response.response);
      settled(response.response);
    } catch (error) {
      self.fail(error);
    }
  }, { canChange: true });
}

/** Follows a run after a decision, until it ends or asks again. Returns the run. */
async function goOn(runId, after, self) {
  const response = await request(`v1/runs/${runId}/events?after=${after}`, { accept: "text/event-stream" });
  self.element.setAttribute("aria-busy", "true");
  self.status("Continuing");
  for await (const { data: event } of events(response)) {
    if (event.type === "answer.started") self.replace("");
    else if (event.type === "answer.delta" && event.data.kind === "text") self.add(event.data.text);
    else if (event.type === "tool.called") self.status(event.data.tool);
    if (ENDED.has(event.type) || event.type === "run.waiting") break;
  }
  const run = await get(`v1/runs/${runId}`);
  if (run.response.metadata.failure) throw new Failure(run.response.metadata.failure.message);
  return run;
}
