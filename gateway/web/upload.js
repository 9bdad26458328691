/** Sends a file of the person's computer to be read into a collection. */

import { Failure, request } from "./api.js";

const UNREADABLE = "The browser cannot read it: it may be a folder, or was moved. Add the files of a folder; a folder of the gateway's machine is read as a whole in Build.";

/** Returns what was read of the file. Throws `Failure`, also for what cannot be read here: sent, a folder that was dropped
 * looks like a lost connection. */
export async function upload(file, collection) {
  await file.slice(0, 1).arrayBuffer().catch(() => Promise.reject(new Failure(UNREADABLE)));
  const form = new FormData();
  form.set("file", file);
  form.set("collection", collection);
  return (await request("v1/documents", { method: "POST", body: form })).json();
}
