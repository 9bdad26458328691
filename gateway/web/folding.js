/** Texts that a person wrote. Of a long one the beginning is displayed, until a button shows all of it: what follows it, such
 * as the answer, must not be pages away. */

import { el } from "./dom.js";

const LONGEST = 4_000; // characters
const MOST_LINES = 40;

/** Returns the element of a text and, if the text is long, the button that unfolds it. */
export function foldable(element, text) {
  if (text.length <= LONGEST && text.split("\n", MOST_LINES + 1).length <= MOST_LINES) return [element];
  const press = el("button.button.plain.unfold", { type: "button", "aria-expanded": "false", onclick: turn }, "Show all");
  element.classList.add("folded");

  function turn() {
    const isFolded = element.classList.toggle("folded");
    press.setAttribute("aria-expanded", String(!isFolded));
    press.textContent = isFolded ? "Show all" : "Show less";
    if (isFolded) press.scrollIntoView({ block: "nearest" }); // its place has moved by pages
  }

  return [element, press];
}

/** Shows all of the texts within an element, so that a part of them can be led to. */
export function unfold(within) {
  for (const press of within.querySelectorAll(".unfold[aria-expanded=false]")) press.click();
}
