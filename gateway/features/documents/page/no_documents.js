/** What a room that answers from documents offers while there are none. */

import { may } from "../access.js";
import { el, icon } from "../dom.js";
import { listCollections } from "./chat_files.js";

let areThere = false; // asked again until there are some
let asking = null;

/** Whether there are no documents, as far as the key may know it. */
export async function lacksDocuments() {
  if (areThere) return false;
  const asked = (asking ??= listCollections({ quiet: true }).finally(() => (asking = null)));
  const number = await asked.then((names) => names.length, () => null);
  areThere = number > 0;
  return number === 0;
}

const missing = el("p", {}, "There are no documents yet, and answers here come from them.");
const way = el("a.button.primary", { href: "#/documents" }, icon("plus"), "Add documents");
const forbidden = el("p", {}, "There are no documents yet. A key with the scope “ingest” adds some.");

/** Says that there are no documents, with the way to some; an empty list if there are. */
export async function offer() {
  if (!(await lacksDocuments())) return [];
  return (await may("ingest", { quiet: true })) ? [missing, way] : [forbidden];
}
