/** What is written in a message box and not sent: it waits there for its person, also while the tab is loaded again. */

const NAME = "stepgate.draft.";

/** Returns what is being written in a conversation; "" is the new one. */
export const read = (conversation) => sessionStorage.getItem(NAME + conversation) ?? "";

export function write(conversation, text) {
  try {
    if (text) sessionStorage.setItem(NAME + conversation, text);
    else sessionStorage.removeItem(NAME + conversation);
  } catch {
    // The tab's storage is full: the words stay in their box.
  }
}

/** Somebody else may use the tab from now on. */
export function forgetDrafts() {
  for (const name of Object.keys(sessionStorage)) if (name.startsWith(NAME)) sessionStorage.removeItem(name);
}
