/** Sends the messages of a chat. One whose connection was lost may have arrived: sent again, it is not there twice. */

import { makeOnce, post } from "./api.js";
import { pathOf } from "./conversation.js";

let unsure = null; // { chat, body, once } of a message that may have arrived although no answer came back

export async function deliver(chat, message) {
  const body = JSON.stringify(message);
  const once = unsure?.chat === chat && unsure.body === body ? unsure.once : makeOnce();
  unsure = null;
  try {
    return await post(`${pathOf(chat.id)}/messages`, message, { once });
  } catch (error) {
    if (error.code === "unreachable") unsure = { chat, body, once };
    throw error;
  }
}
