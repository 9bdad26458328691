/** The page: its views by the hash of its address, each loaded when it is first shown; the key dialog, and the gateway's status. */

import { me, meAgain } from "./access.js";
import { alarm } from "./answer.js";
import { askForKey, askWith, errorText, get, isAtLimit, key, readiness } from "./api.js";
import * as chat from "./chat.js";
import { button, el, fill, icon, keepLooking, short } from "./dom.js";
import { forgetDrafts } from "./drafts.js";
import * as models from "./models.js";
import { leadToChat } from "./navigation.js";
import { close } from "./panel.js";
import { partsIn } from "./parts.js";
import { watchApprovals } from "./team_approvals.js";
import { showView, showWaiting } from "./title.js";

const views = new Map(partsIn("views").map((one) => [one.name, one]));
const loaded = new Map([["chat", chat], ["models", models]]); // name -> the module of a view
const main = document.getElementById("main");
const keyDialog = document.getElementById("key");
const keyButton = document.getElementById("key-button");
const state = document.getElementById("state");
const notice = document.getElementById("notice");
const KEYLESS = ""; // in place of a model: no key, or one that is not taken
const LOOK_MS = 30_000; // between two looks at the gateway's status
const themeButton = document.getElementById("theme");
const THEMES = { system: ["half", "as the system"], light: ["sun", "light"], dark: ["moon", "dark"] };

let current = null; // the view that is shown
let looks = 0; // one more for each address
let owner = ""; // whose key it is
let [keyBanner, oldBanner] = [null, null]; // made once: a banner that is put in again is read out again
let [stateLooks, stateDrawn] = [0, 0]; // the numbers of the newest look at the status, and of the newest that was drawn

/** Shows the view of an address like #/runs/run_1 or #/studio/rooms/office. */
async function route() {
  const look = (looks += 1);
  const [, given, ...rest] = location.hash.split("/");
  const isKnown = views.has(given) || loaded.has(given); // not where the feature of an old address is off
  const name = isKnown ? given : "chat";
  close();
  for (const link of document.querySelectorAll("header nav a"))
    if (link.hash === `#/${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  showView(name, views.get(name)?.label);
  const next = loaded.get(name) ?? (await load(name));
  if (look !== looks) return; // another view was opened meanwhile
  if (current !== next) {
    if (current) current.view.hidden = true;
    current?.hide?.();
    current = next;
    next.view.hidden = false;
    if (!next.view.isConnected) main.append(next.view);
  }
  await next.show(...(isKnown ? rest.map(decode) : []));
}

/** Loads the module of a view. If that fails, a view in its place says why. */
async function load(name) {
  try {
    const module = await views.get(name).load();
    loaded.set(name, module);
    return module;
  } catch (error) {
    const view = el("section.view.empty", {}, alarm(errorText(error)), button("Load the page again", () => location.reload(), { picture: "again" }));
    return { view, show() {}, hide: () => view.remove() };
  }
}

/** A part of the address; one that is not well formed as it is. */
function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Leads from another view into a new chat. The chat is shown first: a hidden message box takes no focus. */
async function enterChat(room, words) {
  location.hash = "#/chat";
  await route();
  await chat.enter(room, words);
}

/** Opens the dialog for a key; `problem` says why the previous one was refused. */
function openKeyDialog(problem) {
  const field = keyDialog.querySelector("input");
  fill(keyDialog.querySelector(".problem"), problem);
  field.value = "";
  keyDialog.returnValue = "";
  keyDialog.showModal();
  return new Promise((resolve) => {
    keyDialog.onclose = async () => {
      const given = keyDialog.returnValue === "use" ? field.value.trim() : "";
      if (given) key.set(given);
      drawKey();
      if (!given) drawState(); // says that one is needed
      if (given && (await isOfAnother())) return startOver("#/chat"); // nothing of the one before is shown, or sent
      resolve(given || null);
      if (!given) return;
      offerViews();
      drawState();
      chat.refresh(); // what failed for want of a key
      dispatchEvent(new Event("reachchange"));
    };
  });
}

/** Whether the key is that of another person than the page was loaded for. */
async function isOfAnother() {
  const caller = await get("v1/me", { quiet: true }).catch(() => null); // a wrong key: the next request says so
  return Boolean(owner && caller && caller.owner !== owner);
}

/** Loads the page again without what was written in it. */
function startOver(place) {
  forgetDrafts();
  if (place) location.hash = place;
  location.reload();
}

/** The next of light, dark, and the system's colours. */
function switchTheme() {
  const names = Object.keys(THEMES);
  window.stepgateTheme.set(names[(names.indexOf(window.stepgateTheme.get()) + 1) % names.length]);
  drawTheme();
}

function drawTheme() {
  const [picture, word] = THEMES[window.stepgateTheme.get()] ?? THEMES.system;
  fill(themeButton, icon(picture));
  themeButton.title = `Colours: ${word}`;
  themeButton.setAttribute("aria-label", `Colours: ${word}. Change them`);
}

/** Shows the views that the caller may use, and how many questions wait. */
async function offerViews() {
  const { scopes, owner: caller } = await me();
  owner = caller;
  document.body.dataset.scopes = scopes.join(" "); // what needs another one is not shown
  dispatchEvent(new Event("rightschange"));
  for (const { name, scope } of views.values())
    document.querySelector(`header nav a[href="#/${name}"]`).hidden = Boolean(scope) && !scopes.includes(scope);
  if (!location.hash && !scopes.includes(views.get("chat").scope)) location.hash = document.querySelector("header nav a:not([hidden])").hash;
  if (scopes.includes("approve")) watchApprovals(drawWaiting);
  else drawWaiting(0);
}

function drawWaiting(number) {
  showWaiting(number);
  const link = document.querySelector('header nav a[href="#/team"]');
  fill(link, "Team", number > 0 && el("span.count", { title: `${number} waiting for you` }, number > 99 ? "99+" : String(number)));
}

function drawKey() {
  keyButton.hidden = !key.get();
}

/** The banner of a tab without a key that is taken: whatever is looked at, there is a way on. */
function keyNeeded() {
  const give = async () => (await askForKey()) && route();
  return el("div.banner.notable.across", { role: "alert" }, icon("key"), el("div", {}, el("b", {}, "A key is needed. "), "Without a valid one, nothing is shown or sent here."),
    el("div.row", {}, button("Use a key", give, { picture: "key" })));
}

/** The banner of a page that is open since before the gateway was upgraded. */
const outdated = () =>
  el("div.banner.notable.across", { role: "alert" }, icon("info"), el("div", {}, el("b", {}, "The gateway was upgraded. "), "This page belongs to the previous version. What you are writing is kept when you load it again."),
    el("div.row", {}, button("Load the page again", () => location.reload(), { picture: "again" })));

/** Whether the gateway has no files of this page's version any more. */
const isOutdated = () => fetch(import.meta.url, { method: "HEAD", cache: "no-store" }).then(({ status }) => status === 404, () => false);

async function drawState() {
  const number = (stateLooks += 1);
  const [ready, caller, isOld] = await Promise.all([readiness(), meAgain().catch((error) => error), !oldBanner && isOutdated()]);
  if (number < stateDrawn) return; // a later look was answered first
  stateDrawn = number;
  const model = caller instanceof Error ? (caller.status === 401 ? KEYLESS : undefined) : caller.model;
  if (ready && isOld) oldBanner = outdated(); // else a proxy has answered for it
  const offered = document.body.dataset.scopes;
  if (caller.scopes && offered !== undefined && offered !== caller.scopes.join(" ")) offerViews(); // its rights were changed
  const isRules = model === null;
  const isHeld = isAtLimit();
  const banner = models.banner(ready, drawState);
  const usual = model ? short(model.split(",")[0]) : "ready";
  const word = !ready ? "unreachable" : model === KEYLESS ? "key needed" : !ready.ready ? "not ready" : isHeld ? "limit reached" : banner ? "model down" : ready.degraded.length ? "degraded" : isRules ? "no model" : usual;
  fill(state, el(`span.dot.${ready?.ready ? (ready.degraded.length || isHeld || isRules || model === KEYLESS ? "awaiting_approval" : "succeeded") : "failed"}`), word);
  const shown = oldBanner ?? banner ?? (model === KEYLESS ? (keyBanner ??= keyNeeded()) : null);
  if (notice.firstChild !== shown) fill(notice, shown);
  const parts = Object.entries(ready?.components ?? {}).map(([name, one]) => `${name}: ${one.detail || (one.ok ? "works" : "does not work")}`);
  if (isHeld) parts.unshift("This key has no requests left this minute; what is waiting continues by itself");
  state.title = parts.join("\n") || "The gateway does not respond";
}

keyDialog.querySelector("form").addEventListener("submit", (event) => {
  event.preventDefault();
  keyDialog.close("use");
});
keyDialog.querySelector("[value=cancel]").addEventListener("click", () => keyDialog.close("cancel"));
keyButton.addEventListener("click", () => {
  key.forget();
  startOver("#/chat"); // the chat that is shown is not that of who comes next
});

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the hash is the view
  main.focus();
});
document.querySelector("header nav").addEventListener("click", (event) => {
  if (event.target.hash && event.target.hash === location.hash) route(); // pressed again: look again
});
for (const kind of ["dragover", "drop"]) // a file that misses its place must not replace the page
  addEventListener(kind, (event) => event.dataTransfer?.types.includes("Files") && event.preventDefault());
askWith(openKeyDialog);
models.whenChanged(() => {
  drawState();
  chat.refresh();
});
for (const sign of ["answerfailed", "reachchange", "limitchange", "rightsrefused", "partlost", "online", "offline"]) addEventListener(sign, drawState); // its model may be down
keepLooking(drawState, LOOK_MS);
leadToChat(enterChat);
offerViews();
document.getElementById("starting").remove();
for (const { view } of loaded.values()) {
  view.hidden = true;
  main.append(view);
}
window.addEventListener("hashchange", route);
themeButton.addEventListener("click", switchTheme);
drawTheme();
drawKey();
drawState();
route();
