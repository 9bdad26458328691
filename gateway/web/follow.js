/** Follows a run while it is worked on: reconnects after a lost connection, from the last event that was seen. */

import { events, Failure, request } from "./api.js";
import { pause } from "./dom.js";

export const OPEN = new Set(["queued", "running", "awaiting_approval"]);
const FIRST_PAUSE_MS = 400;
const LONGEST_PAUSE_MS = 8_000;

/** Calls `on[event](data)` for each event of the stream at a path, until a `view` says that the run has ended, or `signal`
 * aborts. Calls `on.lost(true)` when the connection is lost, and `on.lost(false)` when it is back. */
export async function follow(path, on, signal) {
  let last = "";
  let delay = FIRST_PAUSE_MS;
  for (;;) {
    try {
      const response = await request(path, { accept: "text/event-stream", signal, last });
      on.lost?.(false);
      if (response.status === 204) return;
      for await (const { event, id, data } of events(response)) {
        signal?.throwIfAborted();
        delay = FIRST_PAUSE_MS;
        if (id) last = id;
        on[event]?.(data);
        if (event === "view" && !OPEN.has(data.status)) return;
      }
    } catch (error) {
      if (error.name === "AbortError") throw error;
      const isFinal = error instanceof Failure && error.status >= 400 && error.status < 500 && error.status !== 429;
      if (isFinal) throw error;
      if (error instanceof Failure && error.retryAfter) delay = Math.max(delay, 1000 * error.retryAfter);
    }
    signal?.throwIfAborted();
    on.lost?.(true);
    await Promise.race([pause(delay), backOnline()]);
    delay = Math.min(LONGEST_PAUSE_MS, delay * 1.8);
  }
}

/** Resolves when the browser finds its network, or its tab is looked at, again. */
function backOnline() {
  return new Promise((resolve) => {
    addEventListener("online", resolve, { once: true });
    document.addEventListener("visibilitychange", () => document.hidden || resolve(), { once: true });
  });
}
