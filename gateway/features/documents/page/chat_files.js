/** What a chat does with files: each is read into a collection, and taken out of it again. */

import { get, send } from "../api.js";

/** `read(file, into, { held })` returns what was read: its `document_id`, `passages`, `coverage`, and whether it is `unchanged`. */
export { upload as read } from "./upload.js";

const pathOf = (collection) => `v1/collections/${encodeURIComponent(collection)}`;

/** The names of all collections. */
export const listCollections = async (options) => (await get("v1/collections", options)).data.map((one) => one.name);

/** The room that answers from what was read. */
export const room = "knowledge";

/** The address of the view that shows a collection. */
export const placeOf = (collection) => `#/documents/${encodeURIComponent(collection)}`;

/** Whether a collection is there, as far as the gateway says. */
export const isThere = (collection) => get(pathOf(collection), { quiet: true }).then(() => true, ({ status }) => status !== 404);

/** Removes a collection. */
export const removeCollection = (collection) => send("DELETE", pathOf(collection)).catch(isAbsent);

/** Removes a file from a collection, and an empty one with it. Returns whether the collection is gone. */
export async function remove(id, collection) {
  const of = `collection=${encodeURIComponent(collection)}`;
  await send("DELETE", `v1/documents/${encodeURIComponent(id)}?${of}`).catch(isAbsent);
  const { data } = (await get(`v1/documents?${of}&limit=1`).catch(isAbsent)) ?? { data: [] };
  if (data.length) return false;
  try {
    await removeCollection(collection);
  } catch (error) {
    if (error.status === 409) return false; // another file is being read into it
    throw error;
  }
  return true;
}

function isAbsent(error) {
  if (error.status !== 404) throw error;
}
