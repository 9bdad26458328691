/** A message of the user: its words and pictures, and what can be done with it. */

import { button, el, fill, icon, moment } from "./dom.js";
import { foldable } from "./folding.js";
import { copy, link, safeUrl } from "./html.js";

/** The message, sent `at` a time. `resend(text)` sends other words in its place; without it, it cannot be edited. */
export function question({ text, images = [], at = null, resend = null, pager = null }) {
  const element = el("div.asked");
  const draw = () => {
    const copyButton = tool("Copy message", "copy", () => copy(text, copyButton));
    fill(element,
      images.length > 0 && el("div.pictures", {}, images.map(attached)),
      foldable(el("div.mine", { dir: "auto" }, el("p", {}, text)), text),
      el("div.tools", {}, at && el("time.quiet", { dateTime: at }, moment(at)), pager, copyButton, resend && tool("Edit and send again", "edit", edit)));
  };

  /** Takes the form away again; the focus is where it was opened. */
  function leave() {
    draw();
    element.querySelector(".tools").lastChild.focus();
  }

  function edit() {
    const area = el("textarea", { value: text, rows: Math.min(12, text.split("\n").length + 1), "aria-label": "Edit message" });
    const form = el("form.edit", {
      onsubmit: (event) => {
        event.preventDefault();
        if (area.value.trim()) resend(area.value.trim());
      },
      onkeydown: (event) => {
        if (event.key === "Escape") leave();
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
      },
    }, area, el("div.row", {},
      el("button.button.primary", { type: "submit" }, "Send"), button("Cancel", leave),
      el("span.quiet", {}, "The first version stays beside it.")));
    fill(element, form);
    area.focus();
  }

  draw();
  return element;
}

/** A picture of the message. One at another host is a link: the page loads nothing from there by itself. */
function attached(src) {
  if (src.startsWith("data:")) return el("img", { src, alt: "Attached picture" });
  const address = safeUrl(src);
  return address ? link(address, `Picture at ${new URL(address).host}`) : el("span.quiet", {}, "Attached picture");
}

/** A small button with an icon. */
export function tool(title, picture, onclick) {
  return el("button.tool", { type: "button", title, "aria-label": title, onclick }, icon(picture));
}

/** Steps through versions: "2 / 3". Calls `chosen(id)`. */
export function versions(ids, current, chosen, what) {
  if (ids.length < 2) return null;
  const at = ids.indexOf(current);
  const step = (by, title, picture) => {
    const press = tool(title, picture, () => chosen(ids[at + by]));
    press.disabled = !ids[at + by];
    return press;
  };
  return el("span.pager", { role: "group", "aria-label": `Versions of the ${what}` },
    step(-1, "Earlier version", "left"), el("span", {}, `${at + 1} / ${ids.length}`), step(1, "Later version", "open"));
}
