/** The message box of the chats, with what is attached. What was written in a chat and not sent waits there for its person;
 * words also while the tab is loaded again. */

import { get } from "./api.js";
import { attachments } from "./attachments.js";
import { composer } from "./composer.js";
import { note, ownCollection, pathOf } from "./conversation.js";
import * as drafts from "./drafts.js";
import { partIn } from "./parts.js";

const pictures = new Map(); // of each chat; they are too large for the storage of a tab

/** The box. `send(text)`, `stop()` and `aside` are those of a composer; `filesOf()` that of attachments. */
export function chatBox({ aside, send, stop, filesOf }) {
  const tray = attachments({ filesOf });
  const box = composer({
    label: "Message", placeholder: "Send a message", send: take, stop, aside, attach: tray.add, tray: tray.element, canSend: () => tray.hasPictures,
  });
  const area = box.box;
  let shown = ""; // the chat; "" is the new one
  let limit = null; // the collection that the chat is answered from, if from one only
  let halt = () => {};
  area.addEventListener("input", () => drafts.write(shown, area.value));

  function take(text) {
    drafts.write(shown, "");
    send(text);
  }

  function write(text) {
    area.value = text;
    drafts.write(shown, text);
    box.grow();
  }

  /** Says from which collection the chat that is shown is answered, if from one only, and whether that was deleted. */
  function limitTo(collection) {
    const files = partIn("attachments");
    if (!files) return; // without collections, none limits the answers
    limit = collection;
    const chat = shown;
    const what = collection === ownCollection(chat) ? "the files of this chat" : `the documents in ${collection}`;
    const free = () => note(chat, { collection: null }).then(() => chat === shown && limitTo(null));
    const say = (more) => limit === collection && chat === shown && tray.limit(collection, what, free, more);
    if (!collection) return say();
    files.load().then(async ({ isThere, placeOf }) => {
      say({ place: placeOf(collection) });
      if (!(await isThere(collection))) say({ isGone: true });
    }).catch(() => say()); // the next look may succeed
  }

  return {
    element: box.element, tray, write,
    busy: box.busy,
    focus: () => box.focus(),
    /** Shows what is being written in a chat. */
    open(chat) {
      pictures.set(shown, tray.take());
      limitTo(null);
      halt = () => {}; // what another chat waits for goes on
      shown = chat;
      write(drafts.read(chat));
      tray.giveBack(pictures.get(chat) ?? []);
      tray.bringBack(chat);
    },
    limitTo,
    /** Looks again whether the collection that the chat is answered from is there. */
    look: () => limitTo(limit),
    /** Answers a chat from all documents again, if it was answered from this collection. */
    async free(chat, collection) {
      const { metadata } = await get(pathOf(chat));
      if (metadata.collection !== collection) return;
      await note(chat, { collection: null });
      if (chat === shown) limitTo(null);
    },
    /** The chat that is shown has an id now. */
    rename(chat) {
      drafts.write(shown, "");
      shown = chat;
      drafts.write(chat, area.value);
    },
    /** Puts back a message that was not sent, into the box of its chat, before what was written there since. */
    giveBack(chat, text, taken = []) {
      if (chat !== shown) {
        drafts.write(chat, joined(text, drafts.read(chat)));
        return void (taken.length && pictures.set(chat, [...taken, ...(pictures.get(chat) ?? [])]));
      }
      write(joined(text, area.value));
      tray.giveBack(taken);
    },
    /** Waits for the attached files to be read. Returns whether all were; null after `halt()`. */
    filesRead() {
      const halted = new Promise((resolve) => (halt = () => resolve(null)));
      return Promise.race([tray.settled(), halted]);
    },
    halt: () => halt(),
  };
}

const joined = (...texts) => texts.filter(Boolean).join("\n\n");
