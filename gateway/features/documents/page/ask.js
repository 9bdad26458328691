/** From a collection into a chat about it. */

import { enterChat } from "../navigation.js";

export const askAbout = (collection) => enterChat("knowledge", `What do the documents in ${collection} say about `);
