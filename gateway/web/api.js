/** HTTP client of the gateway: JSON, server-sent events, and the API key, which is kept only in this tab. */

const KEPT = "stepgate.key";
let keyAsker = async () => null;
const REST_MS = 3_000; // after "Not now", nothing that is still being loaded asks again
let asking = null;
let declined = -REST_MS;
let isReached = true; // the gateway, by the last request
const MOST_WAITS = 5; // for the key's limit of requests, of at most a minute each
let limitedUntil = 0; // when the key allows another request, by the last refusal

/** A request that was refused or failed, with the gateway's message. */
export class Failure extends Error {
  constructor(message, { status = 0, code = "", retryAfter = 0 } = {}) {
    super(message);
    Object.assign(this, { status, code, retryAfter });
  }
}

export const key = {
  get: () => sessionStorage.getItem(KEPT),
  set: (text) => sessionStorage.setItem(KEPT, text),
  forget: () => sessionStorage.removeItem(KEPT),
};

/** Sets how a person is asked for a key: `asker` is called with the refusal, and returns the key or null. */
export function askWith(asker) {
  keyAsker = asker;
}

/** Asks the person for a key, once for all who wait for one. Returns it, or null after "Not now". */
export function askForKey(problem = "") {
  asking ??= keyAsker(problem).then((given) => {
    if (!given) declined = performance.now();
    return given;
  }).finally(() => (asking = null));
  return asking;
}

/** Returns the response of a successful request; asks for a missing key, once for all waiting requests. One that the key's
 * limit of requests a minute refuses is sent again when the key allows it, after `held(true)`. A `quiet` one, which nobody waits
 * for, asks nothing and waits for nothing. `once` is the same for a request that is sent again, which is done once. Throws `Failure`. */
export async function request(path, { method = "GET", body, accept = "application/json", signal, last = "", once = "", quiet = false, held = () => {} } = {}) {
  for (let waits = 0; ; ) {
    if (quiet && isAtLimit()) throw new Failure("The key's limit of requests a minute is reached.", { status: 429 });
    const sent = key.get();
    const headers = { accept };
    if (last) headers["last-event-id"] = last;
    if (once) headers["idempotency-key"] = once;
    if (sent) headers.authorization = `Bearer ${sent}`;
    const isForm = body instanceof FormData; // the browser writes its type
    if (body !== undefined && !isForm) headers["content-type"] = "application/json";
    const written = body === undefined || isForm ? body : JSON.stringify(body);
    let response;
    try {
      response = await fetch(path, { method, headers, signal, body: written });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      reached(false);
      throw new Failure("The gateway cannot be reached. Is it running?", { code: "unreachable" });
    }
    reached(true);
    if (response.ok) return response;
    const failure = await refused(response);
    if (isOverLimit(response) && !quiet && (waits += 1) <= MOST_WAITS) {
      held(true);
      await untilAllowed(failure.retryAfter, signal);
      held(false);
      continue;
    }
    if (response.status === 403 && !quiet) dispatchEvent(new Event("rightsrefused"));
    if (response.status !== 401 || quiet) throw failure;
    if (key.get() !== sent) continue; // somebody has given another key meanwhile
    if (!asking && method === "GET" && performance.now() - declined < REST_MS) throw failure;
    if (!(await askForKey(sent ? errorText(failure) : ""))) throw failure;
  }
}

/** Whether the key allows no request at this moment. */
export const isAtLimit = () => performance.now() < limitedUntil;

/** Whether the key's limit of requests refused this one, which the gateway has not begun then. */
const isOverLimit = (response) => response.status === 429 && response.headers.get("x-ratelimit-remaining-requests") === "0" && response.headers.has("retry-after");

/** Waits until the key allows another request. The event `limitchange` is sent before and after it. */
async function untilAllowed(seconds, signal) {
  limitedUntil = Math.max(limitedUntil, performance.now() + 1000 * seconds);
  dispatchEvent(new Event("limitchange"));
  await new Promise((resolve) => {
    setTimeout(resolve, 1000 * seconds);
    signal?.addEventListener("abort", resolve, { once: true });
  });
  dispatchEvent(new Event("limitchange"));
  signal?.throwIfAborted();
}

/** Tells the page, by the event `reachchange`, that the connection is lost or back. */
function reached(is) {
  if (is === isReached) return;
  isReached = is;
  dispatchEvent(new Event("reachchange"));
}

/** Returns the JSON at a path. */
export const get = async (path, options) => (await request(path, options)).json();

/** Posts an object and returns the JSON response. */
export const post = async (path, body = {}, options = {}) => (await request(path, { ...options, method: "POST", body })).json();

/** A new value for `once`. */
export const makeOnce = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

/** Sends an object by another method; returns the JSON response, or null if there is none. */
export async function send(method, path, body) {
  const response = await request(path, { method, body });
  return response.status === 204 ? null : response.json();
}

const SILENCE_MS = 60_000; // the gateway sends a sign of life every few seconds

/** Yields the events of a stream as `{ event, id, data }` until it ends. Throws after a long silence. */
export async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await within(reader.read(), SILENCE_MS);
      if (done) return;
      const parts = (rest + value).split("\n\n");
      rest = parts.pop();
      for (const part of parts) {
        const found = parsed(part);
        if (found === null) continue;
        if (found.data === "[DONE]") return;
        yield { ...found, data: JSON.parse(found.data) };
      }
    }
  } finally {
    reader.cancel().catch(() => {}); // it has ended, or nobody reads on
  }
}

function within(promise, ms) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Failure("The connection has gone silent.", { code: "unreachable" })), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** A message of the gateway without the marks of code. */
export const plain = (text) => text.replace(/`([^`]+)`/g, "$1");

/** Returns the message of an error, as a sentence. */
export function errorText(error) {
  if (!(error instanceof Failure)) return `The page failed: ${error.message}`;
  return sentence(error.message);
}

/** A message of the gateway as a sentence; the name of a file or a field at its beginning stays. */
export const sentence = (text) => plain(text).replace(/^[a-z](?=[a-z]* )/, (first) => first.toUpperCase());

/** Returns the gateway's report of its readiness, as far as the key may see it; null if it does not respond. */
export const readiness = () => fetch("ready", { headers: key.get() ? { authorization: `Bearer ${key.get()}` } : {} }).then((response) => response.json()).catch(() => null);

function parsed(part) {
  const found = { event: "message", id: "", data: "" };
  for (const line of part.split("\n")) {
    const colon = line.indexOf(":");
    if (colon > 0) found[line.slice(0, colon)] = line.slice(colon + 1).trimStart();
  }
  return found.data ? found : null;
}

async function refused(response) {
  const body = await response.json().catch(() => ({}));
  const error = body.error ?? {};
  return new Failure(error.message ?? `The gateway answered ${response.status}.`, {
    status: response.status,
    code: error.error_code ?? error.code ?? "",
    retryAfter: Number(response.headers.get("retry-after") ?? 0),
  });
}
