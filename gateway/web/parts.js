/** The parts of the page that the gateway's features add, as the gateway lists them in the page. A part is loaded when it is shown. */

import { Failure } from "./api.js";

const LOST = "This part of the page could not be loaded: the gateway cannot be reached, or now runs another version. Load the page again.";
const listed = [...document.querySelectorAll("header nav a"), ...document.getElementById("parts").content.children];
const parts = listed.map(({ textContent: label, dataset: { slot, name, module, scope, rooms = "" } }) =>
  ({ slot, name, label, scope, rooms: rooms.split(" ").filter(Boolean), load: () => load(module) }));

/** The parts in a slot, in their order: each with its `name`, its `label`, the `scope` that it needs ("" for none), its `rooms`,
 * and `load()`, which resolves to its module. It throws `Failure`. */
export const partsIn = (slot) => parts.filter((one) => one.slot === slot);

/** The part in a slot that only one feature may fill; undefined where none does. */
export const partIn = (slot) => partsIn(slot)[0];

/** The view in which a room is worked in, where it has one of its own; else undefined. */
export const viewOf = (room) => partsIn("views").find((one) => one.rooms.includes(room));

/** Whether the page has a view. */
export const hasView = (name) => partsIn("views").some((one) => one.name === name);

const styles = new Map(); // address -> a promise of the style sheet

/** Resolves once the style sheet beside a module applies, or cannot be had: `await addStyle(import.meta.url, "poems.css")` at
 * the module's beginning. */
export function addStyle(module, name) {
  const { href } = new URL(name, module);
  if (!styles.has(href)) styles.set(href, new Promise((resolve) => {
    document.head.append(Object.assign(document.createElement("link"), { rel: "stylesheet", href, onload: resolve, onerror: resolve }));
  }));
  return styles.get(href);
}

const modules = new Map(); // name -> a promise of what was loaded: asking again takes no time

function load(name) {
  if (!modules.has(name)) modules.set(name, import(`./${name}`).catch((error) => {
    modules.delete(name);
    console.error(error); // what is wrong with the module
    dispatchEvent(new Event("partlost"));
    throw new Failure(LOST);
  }));
  return modules.get(name);
}
