/** The messages of a chat as they are drawn. */

import { answer } from "./answer.js";
import { question, tool, versions } from "./question.js";

/** Draws messages. `branch(message)` sends another version of one, `choose(id)` shows the branch of another version, and
 * `grown()` is called after each change of an answer's size. */
export function makeMessages({ branch, choose, grown }) {
  const replies = new Map(); // id of a message -> its answer, of those that are shown

  function drawQuestion({ id, content, images, created_at: at, parent, siblings }) {
    const element = question({
      text: content, images, at,
      resend: (text) => branch({ content: text, images, parent: parent ?? "root" }),
      pager: versions(siblings, id, choose, "message"),
    });
    element.dataset.message = id;
    return element;
  }

  function drawAnswer({ id, parent, view: known }) {
    const again = () => branch({ parent });
    const reply = answer({ actions: [tool("Answer again", "again", again)], grown, again });
    reply.element.dataset.message = id;
    replies.set(id, reply);
    if (known) reply.view(known);
    return reply.element;
  }

  return {
    replies,
    draw: (message) => (message.role === "user" ? drawQuestion(message) : drawAnswer(message)),
  };
}
