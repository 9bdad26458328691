/** Sends a file of the person's computer to be read into a collection. */

import { Failure, request } from "./api.js";

const UNREADABLE = "The browser cannot read it: it may be a folder, or was moved. Add the files of a folder; a folder of the gateway's machine is read as a whole in Build.";

const turns = new Map(); // collection -> the end of its last upload: a file at a time is written into it

/** Returns what was read of the file, after those that were sent into the collection before. Throws `Failure`, also for what the browser cannot read: sent, a folder that was dropped
 * or a file that was moved fails like a lost connection, so that the gateway is asked whether it is there. */
export function upload(file, collection) {
  const sent = (turns.get(collection) ?? Promise.resolve()).then(() => sendFile(file, collection));
  turns.set(collection, sent.catch(() => {}));
  return sent;
}

async function sendFile(file, collection) {
  const form = new FormData();
  form.set("file", file);
  form.set("collection", collection);
  try {
    return await (await request("v1/documents", { method: "POST", body: form })).json();
  } catch (error) {
    if (error.code !== "unreachable") throw error;
    await request("health", { quiet: true });
    throw new Failure(UNREADABLE);
  }
}
