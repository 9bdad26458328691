/** What the caller may do, so that nothing else is offered. */

import { get, key } from "./api.js";

export const LOCAL = "local"; // the owner of what is asked from the gateway's machine without a key

let asking = null;
let asked = null; // the key that was asked about

/** Returns who calls and with which scopes; asked once for each key. A gateway that cannot say refuses by itself later.
 * `quiet` asks no person for a key. */
export function me({ quiet = false } = {}) {
  if (asked !== key.get()) asking = null;
  asked = key.get();
  asking ??= get("v1/me", { quiet }).catch(() => {
    asking = null;
    return { owner: "", key: null, scopes: ["chat", "agent", "approve", "ingest", "rooms", "admin"], requires_key: false };
  });
  return asking;
}

/** Asks it again: what a key may do can be changed while the page is open. Throws `Failure`. */
export async function meAgain() {
  const used = key.get();
  const caller = await get("v1/me", { quiet: true });
  if (used === key.get()) [asked, asking] = [used, Promise.resolve(caller)];
  return caller;
}

/** Returns whether the caller has a scope. */
export const may = async (scope, options) => (await me(options)).scopes.includes(scope);

/** Returns whether the caller reads the runs of all owners, and decides on what they ask: without a key nobody does. */
export async function readsAll(options) {
  const { scopes, key, requires_key: isWithKeys } = await me(options);
  return Boolean(key || isWithKeys) && scopes.includes("admin");
}

/** An owner as a person reads it. */
export const personOf = (owner) => (owner === LOCAL ? "this machine" : owner);
