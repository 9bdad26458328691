/** Sends a file of the person's computer to be read into a collection. */

import { Failure, request } from "../api.js";

const UNREADABLE = "The browser cannot read it: it may have been moved, renamed or deleted. Add it again from where it is now.";
const BROKEN_OFF = "The connection was lost while the file was sent.";
const TOO_LARGE = "The connection was ended while the file was sent: it may be larger than this gateway accepts.";
const LARGE = 100_000_000; // bytes: of more, a gateway does not wait for the end to refuse them

const turns = new Map(); // collection -> the end of its last upload: a file at a time is written into it
let unsent = 0; // files that are only in this tab so far
addEventListener("beforeunload", (event) => unsent > 0 && event.preventDefault());

/** Returns what was read of the file, after those that were sent into the collection before; calls `begun()` when it is sent, and
 * `held(is)` when it waits for the key's limit of requests. Throws `Failure`. */
export function upload(file, collection, options = {}) {
  unsent += 1;
  const sent = (turns.get(collection) ?? Promise.resolve()).then(() => sendFile(file, collection, options)).finally(() => (unsent -= 1));
  turns.set(collection, sent.catch(() => {}));
  return sent;
}

async function sendFile(file, collection, { begun = () => {}, held }) {
  begun();
  const form = new FormData();
  form.set("file", file);
  form.set("collection", collection);
  try {
    return await (await request("v1/documents", { method: "POST", body: form, held })).json();
  } catch (error) {
    if (error.code !== "unreachable") throw error;
    if (!(await isReadable(file))) throw new Failure(UNREADABLE); // its request fails like a lost connection
    await request("health", { quiet: true }); // throws that the gateway cannot be reached
    throw new Failure(file.size > LARGE ? TOO_LARGE : BROKEN_OFF);
  }
}

/** Whether the browser can read a file: not one that was moved, of which a slice is empty. */
async function isReadable(file) {
  const reader = file.stream().getReader();
  const isRead = await reader.read().then(() => true, () => false);
  reader.cancel().catch(() => {}); // the rest of it
  return isRead;
}
