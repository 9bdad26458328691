/** What the sections of the studio share: fields, lists of choices, and buttons that report what became of them. */

import { errorText } from "./api.js";
import { button, el, fill } from "./dom.js";

/** A labelled field of one line; `hint` stands below its label. */
export const field = (label, name, value = "", { hint = "", ...more } = {}) =>
  el("label", {}, label, hint && el("span.quiet", {}, hint), el("input", { name, value: value ?? "", autocomplete: "off", ...more }));

/** A labelled field of several lines. */
export const area = (label, name, value = "", { hint = "", rows = 4, ...more } = {}) =>
  el("label", {}, label, hint && el("span.quiet", {}, hint), el("textarea", { name, value: value ?? "", rows, ...more }));

/** A labelled choice; `options` are pairs of value and word. */
export function choice(label, name, value, options, { hint = "" } = {}) {
  const select = el("select.pill", { name }, options.map(([key, word]) => el("option", { value: key }, word)));
  select.value = value;
  return el("label", {}, label, hint && el("span.quiet", {}, hint), select);
}

/** All of some names, or only those that are ticked. `read()` returns null for all. */
export function selection(legend, names, selected) {
  const boxes = [...new Set([...names, ...(selected ?? [])])].map((name) =>
    el("label.check", {}, el("input", { type: "checkbox", value: name, checked: selected?.includes(name) ?? false }), name));
  const some = el("div.ticks", {}, boxes);
  const limit = el("input", { type: "checkbox", checked: selected !== null, onchange: () => (some.hidden = !limit.checked) });
  some.hidden = selected === null;
  const element = el("fieldset", {}, el("legend", {}, legend), el("label.check", {}, limit, "Only these"), some);
  const read = () => (limit.checked ? boxes.map((box) => box.firstChild).filter((box) => box.checked).map((box) => box.value) : null);
  return { element, read };
}

/** A row of buttons, each `[word, act, kind]`, and the place where the result of the last one is told.
 *
 * While one works, all are disabled. `act` returns what to tell, or nothing if the page has moved on. */
export function actions(...given) {
  const said = el("p", { role: "status" });
  const row = el("div.row", {}, given.filter(Boolean).map(([word, act, kind = "", confirmed = ""]) =>
    button(word, () => work(act, confirmed), { kind })));
  async function work(act, confirmed) {
    if (confirmed && !confirm(confirmed)) return;
    for (const one of row.children) one.disabled = true;
    said.className = "quiet";
    fill(said, "Working …");
    try {
      fill(said, (await act()) ?? "");
    } catch (error) {
      said.className = "problem";
      fill(said, errorText(error));
    } finally {
      for (const one of row.children) one.disabled = false;
    }
  }
  return el("div.actions", {}, row, said);
}

/** A titled part of a page; null without content. */
export function part(title, ...content) {
  const shown = content.flat(2).filter(Boolean);
  return shown.length ? el("section", {}, el("h2", {}, title), shown) : null;
}

/** Text in a fixed-width block that can be scrolled with the keyboard. */
export const code = (text, label) => el("pre.code", { tabIndex: 0, role: "region", "aria-label": label }, text);

/** A list of plain lines; null for none. */
export const lines = (texts) => (texts.length ? el("ul.lines", {}, texts.map((text) => el("li", {}, text))) : null);
