/** The messages of a chat as they are drawn. What is drawn and has not changed stays as it is, with what a person reads,
 * selects, unfolds or is about to press there. */

import { answer } from "./answer.js";
import { el } from "./dom.js";
import { question, tool, versions } from "./question.js";

const QUIET_MS = 1_500; // until a screen reader has taken note of what was put in

/** The messages. `branch(message)` sends another version of one, `choose(id)` shows the branch of another version, `grown()`
 * is called after each change of an answer's size, and `left()` when the message that had the focus is not there any more. */
export function makeMessages({ branch, choose, grown, left }) {
  const log = el("div.log", { role: "log", "aria-label": "Conversation" });
  const replies = new Map(); // id of a message -> its answer, of those that are shown
  const questions = new Map(); // id of a message -> { element, siblings }
  let timer = 0;

  function drawQuestion({ id, content, images, created_at: at, parent, siblings }) {
    const drawn = questions.get(id);
    if (drawn?.siblings === siblings.join()) return drawn.element;
    const element = question({
      text: content, images, at,
      resend: (text) => branch({ content: text, images, parent: parent ?? "root" }),
      pager: versions(siblings, id, choose, "message"),
    });
    element.dataset.message = id;
    questions.set(id, { element, siblings: siblings.join() });
    return element;
  }

  function drawAnswer({ id, parent, view: known }) {
    const drawn = replies.get(id);
    const again = () => branch({ parent });
    const reply = drawn ?? answer({ actions: [tool("Answer again", "again", again)], grown, again });
    reply.element.dataset.message = id;
    replies.set(id, reply);
    if (known && known.seq !== drawn?.seq) reply.view(known);
    return reply.element;
  }

  const draw = (message) => (message.role === "user" ? drawQuestion(message) : drawAnswer(message));

  /** Changes the log without a word: what was written before is no news that is read out. */
  function quietly(change) {
    log.setAttribute("aria-live", "off");
    clearTimeout(timer);
    timer = setTimeout(() => log.removeAttribute("aria-live"), QUIET_MS);
    change();
  }

  /** Shows the newest messages of a branch; earlier ones of it stay. Returns whether there are such. */
  function place(messages) {
    const focus = placeOf(document.activeElement);
    const now = messages.map(draw);
    const before = now[0]?.parentElement === log ? [...log.children].slice(0, [...log.children].indexOf(now[0])) : [];
    const all = [...before.filter((one) => one.dataset.message), ...now];
    const stays = new Set(all);
    quietly(() => {
      for (const child of [...log.children]) if (!stays.has(child)) child.remove();
      for (const [at, one] of all.entries()) if (log.children[at] !== one) log.insertBefore(one, log.children[at] ?? null);
    });
    for (const drawn of [replies, questions])
      for (const [id, { element }] of drawn) if (!element.isConnected) drawn.delete(id);
    focus?.();
    return all.length > now.length;
  }

  /** Returns what gives the focus back to the button of the message in its place, such as a step through versions; null if it
   * is not in the log. */
  function placeOf(focused) {
    const at = [...log.children].findIndex((one) => one.contains(focused));
    if (at < 0) return null;
    return () => {
      if (log.contains(document.activeElement)) return;
      const alike = [...(log.children[at]?.querySelectorAll(".tools button:enabled") ?? [])].filter((one) => one.checkVisibility());
      const next = alike.find((one) => one.title === focused.title) ?? alike.find((one) => one.closest(".pager") && focused.closest(".pager"));
      if (next) next.focus({ preventScroll: true });
      else left();
    };
  }

  return {
    element: log, replies, place,
    /** Puts a message that the gateway has stored, and its answer, in place of what was sent. */
    settle(asked, placeholder, { run_id: runId, user_message: userId, answer: answerId, parent }) {
      const text = asked.querySelector(".mine").textContent;
      const images = [...asked.querySelectorAll("img")].map((one) => one.src);
      asked.replaceWith(draw({ role: "user", id: userId, content: text, images, created_at: new Date().toISOString(), parent, siblings: [userId] }));
      placeholder.replaceWith(draw({ role: "assistant", id: answerId, parent: userId, run_id: runId }));
    },
    /** Shows earlier messages: out of sight, they are not laid out. */
    prepend(messages) {
      const drawn = messages.map(draw);
      for (const one of drawn) one.classList.add("far");
      quietly(() => log.prepend(...drawn));
    },
    /** Shows something in place of the messages. */
    empty(...instead) {
      for (const drawn of [replies, questions]) drawn.clear();
      quietly(() => log.replaceChildren(...instead));
    },
  };
}
