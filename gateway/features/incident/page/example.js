/** The example company, offered in rooms that answer from documents while there are none. */

import { may } from "../access.js";
import { post } from "../api.js";
import { button, el } from "../dom.js";
import { lacksDocuments, offer as offerDocuments } from "../documents/no_documents.js";

const WORD = "Load the example company";
let changed = () => {};
const press = button(WORD, load);
const example = [press, el("p.quiet", {}, "The example: policies, runbooks and tickets, in collections of their own.")];

/** The button; calls `then()` once there are documents. The incident desk says itself what it lacks. */
export async function offer(room, then) {
  changed = then;
  const before = room === "incident" ? await offerDocuments() : [];
  const isOffered = (await lacksDocuments()) && (await may("ingest", { quiet: true }));
  return isOffered ? [...before, ...example] : before;
}

async function load() {
  press.disabled = true;
  press.lastChild.textContent = "Loading …";
  try {
    await post("v1/corpus/example");
    await changed();
  } finally {
    press.disabled = false;
    press.lastChild.textContent = WORD;
  }
}
