/** The view of the feature: the caller's favourite poems, and a form that adds one. */

import { get, send } from "../api.js";
import { attempt, el, fill } from "../dom.js";

const titles = el("ul.lines");
const title = el("input", { required: true, maxLength: 200, autocomplete: "off" });
const form = el("form.form", { onsubmit: add }, el("label", {}, "Title", title), el("div.row", {}, el("button.button.primary", { type: "submit" }, "Add")));

/** What the page shows while the view is open. */
export const view = el("section.view.poems", { "aria-label": "Poems" }, el("div.scroll", {}, el("div.column.run", {},
  el("header", {}, el("h1", {}, "Poems"), el("p.lead", {}, "Your favourites. An answer in the room Poems ends with the newest one.")),
  titles, form)));

/** Called each time that the view is opened. The gateway keeps the titles; the view keeps nothing. */
export const show = () => attempt(titles, async () => draw(await get("v1/poems")));

function draw({ data }) {
  fill(titles, data.length ? data.map((one) => el("li", { dir: "auto" }, one)) : el("li.quiet", {}, "None yet. Add the first one below."));
}

function add(event) {
  event.preventDefault();
  attempt(form, async () => {
    draw(await send("PUT", `v1/poems/${encodeURIComponent(title.value.trim())}`));
    title.value = "";
  });
}
