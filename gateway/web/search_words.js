/** The words of a search in texts: marked, and led to. */

import { el } from "./dom.js";
import { unfold } from "./folding.js";

const QUOTES = /["“”„]/g;

/** The words of a query as the gateway reads them: what is in quotation marks is one of them. */
export const wordsOf = (query) =>
  (query.match(/["“”„][^"“”„]+["“”„]|\S+/g) ?? []).map((word) => word.replace(QUOTES, "").trim()).filter(Boolean);

/** An expression that finds the words, the longest ones first. There has to be one. */
const expression = (words) => new RegExp(words.toSorted((one, other) => other.length - one.length).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(/\s+/g, "\\s+")).join("|"), "gi");

/** A text with its words marked. */
export function marked(text, words) {
  if (!words.length) return [text];
  const between = text.split(expression(words));
  return [...text.matchAll(expression(words))].flatMap(([word], at) => [between[at], el("mark", {}, word)]).concat(between.at(-1));
}

/** Leads to a message, and in it to the longest of the words: a short one may be a part of any other. They stay marked until
 * another message is led to. */
export function reveal(message, words) {
  const ranges = words.length ? [...message.querySelectorAll(".mine, .prose")].flatMap((text) => find(text, words)) : [];
  if (ranges.length) unfold(message);
  const longest = ranges.reduce((best, one) => (best.toString().length < one.toString().length ? one : best), document.createRange());
  const place = longest.startContainer.parentElement;
  (message.contains(place) && place.checkVisibility() ? place : message).scrollIntoView({ block: "center" });
  if (window.Highlight) CSS.highlights.set("sought", new Highlight(...ranges));
  message.tabIndex = -1;
  message.focus({ preventScroll: true });
}

function find(element, words) {
  const nodes = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  const ranges = [];
  while (nodes.nextNode()) {
    for (const { 0: word, index } of nodes.currentNode.data.matchAll(expression(words))) {
      const range = document.createRange();
      range.setStart(nodes.currentNode, index);
      range.setEnd(nodes.currentNode, index + word.length);
      ranges.push(range);
    }
  }
  return ranges;
}
