/** What a conversation of Build is made of: messages, and what is done before an answer. */

import { announce, setBusy } from "../announce.js";
import { count, el, words } from "../dom.js";
import { foldable } from "../folding.js";
import { showMarkdown } from "../html.js";
import { sign } from "../trace.js";

/** Returns the lines of a summary as a Markdown list. */
export const listed = (summary) => summary.split("\n").map((line) => (line.startsWith("- ") ? `  ${line}` : `- ${line}`)).join("\n");

export const mine = (text) => el("div.asked", {}, foldable(el("div.mine", { dir: "auto" }, el("p", {}, text)), text));

export function theirs(text) {
  const prose = el("div.prose");
  showMarkdown(prose, text);
  return el("article.answer", { "aria-label": "Answer" }, prose);
}

/** An answer that is being written. */
export function growingAnswer(...inner) {
  const answer = el("article.answer", { "aria-label": "Answer" }, inner);
  setBusy(answer, true);
  return answer;
}

/** The activity before an answer: tools and sub-agents, one line each, updated until it has ended; `isPast` is one that has. */
export function activity({ isPast = false } = {}) {
  const now = el("span", {}, "Thinking");
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
    fold.progress({ text: `${words(name)}${tool ? `: ${words(tool)}` : ""}` });
  };
  fold.progress = ({ text }) => {
    now.textContent = text;
    if (!isPast) announce(text);
  };
  fold.over = () => {
    fold.classList.add("over");
    fold.hidden = !lines.childElementCount;
    fold.progress({ text: `${count(lines.childElementCount, "thing")} done` });
  };
  return fold;
}
