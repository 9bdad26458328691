/** Ways from one view into another. */

let enter = async () => {};

/** Sets what leads into the chat: `go(room, words)`. */
export const leadToChat = (go) => (enter = go);

/** Opens a new chat in a room ("" for the usual one) with the first words of a message. */
export const enterChat = (room, words) => enter(room, words);
