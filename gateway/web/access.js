/** What the caller may do, so that nothing else is offered. */

import { get, key } from "./api.js";

let asking = null;
let asked = null; // the key that was asked about

/** Returns who calls and with which scopes; asked once for each key. A gateway that cannot say refuses by itself later. */
export function me() {
  if (asked !== key.get()) asking = null;
  asked = key.get();
  asking ??= get("v1/me").catch(() => {
    asking = null;
    return { owner: "", key: null, scopes: ["chat", "agent", "approve", "ingest", "rooms", "admin"], requires_key: false };
  });
  return asking;
}

/** Returns whether the caller has a scope. */
export const may = async (scope) => (await me()).scopes.includes(scope);
