/** Sends the messages of a chat. One whose connection was lost may have arrived: sent again, it is not there twice. */

import { makeOnce, post } from "./api.js";

let unsure = null; // { path, body, once } of a message that may have arrived although no answer came back

/** Returns what `put(path, message, { once })` does. What it throws has `isAgain`: whether the message may have arrived before. */
export async function deliver(path, message, put = post) {
  const body = JSON.stringify(message);
  const isAgain = unsure?.path === path && unsure.body === body;
  const once = isAgain ? unsure.once : makeOnce();
  unsure = null;
  try {
    return await put(path, message, { once });
  } catch (error) {
    if (error.code === "unreachable") unsure = { path, body, once };
    throw Object.assign(error, { isAgain });
  }
}
