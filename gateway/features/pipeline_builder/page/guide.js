/** The guided start of a pipeline: creates a source (folder, site or Drive) and a conversation about it. */

import { get, post, errorText } from "../api.js";
import { el, icon } from "../dom.js";
import { folderPicker } from "./folder_picker.js";

const KINDS = {
  local: {
    word: "A folder",
    picture: "folder",
    label: "Path of the folder",
    place: "my-docs",
    hint: "Choose it here, or write its path. Files of your own computer are added in Documents.",
    needs: "You need a folder on the gateway's machine, below one that it may read.",
  },
  web: {
    word: "A site",
    picture: "site",
    label: "Address of the site",
    place: "https://docs.example.org",
    hint: "Linked pages are read too.",
    needs: "You need its address, and the gateway must reach it.",
  },
  gdrive: {
    word: "A Drive",
    picture: "drive",
    label: "Id or link of the Drive folder",
    place: "https://drive.google.com/…",
    hint: "Shared with the account of the credential.",
    needs: "You need a Google credential that the operator has stored with stepgate credentials.",
  },
};

const NO_MODEL = "No model is connected, and a conversation about a source needs one. Files that you add in Documents are read without a model.";

/** The form. Calls `begun(id, opening)` with the new conversation and its first message. */
export async function guide(begun) {
  let kind = "local";
  const where = el("input", { required: true, maxLength: 4000, autocomplete: "off" });
  const label = el("span");
  const hint = el("span.quiet");
  const credential = el("input", { maxLength: 200, autocomplete: "off", placeholder: "its name" });
  const credentialRow = el("label", {}, "Credential", credential);
  const goal = el("textarea", { rows: 2, placeholder: "Research papers I want to ask about methods and results" });
  const needs = el("p.quiet");
  const { model } = await get("v1/me").catch(() => ({})); // first: nothing moves below a hand
  const picker = folderPicker((path) => (where.value = path));
  const problem = el("p.problem", { role: "alert" });
  const begin = el("button.button.primary", { type: "submit" }, "Begin");
  const choice = ([id, one]) => el("label.choice", {},
    el("input", { type: "radio", name: "kind", value: id, checked: id === kind, onchange: () => pick(id) }),
    icon(one.picture), one.word);

  function pick(id) {
    kind = id;
    label.textContent = KINDS[id].label;
    hint.textContent = KINDS[id].hint;
    where.placeholder = KINDS[id].place;
    needs.textContent = KINDS[id].needs;
    credentialRow.hidden = id !== "gdrive";
    picker.hidden = id !== "local";
    where.value = "";
  }

  async function submit(event) {
    event.preventDefault();
    begin.disabled = true;
    problem.textContent = "";
    try {
      const wanted = { source_type: kind, source_identifier: where.value.trim() };
      if (kind === "gdrive" && credential.value.trim()) wanted.credentials_id = credential.value.trim();
      const source = await post("v1/sources", wanted);
      const made = await post("api/v2/agent/conversations", { source_id: source.id });
      const wish = goal.value.trim();
      begun(made.id, /\b(help|index)/i.test(wish) ? wish : wish ? `Help me index this: ${wish}` : "Help me index this.");
    } catch (error) {
      problem.textContent = errorText(error);
      begin.disabled = false;
    }
  }

  pick(kind);
  return el("div.scroll", {}, el("form.guide.column", { onsubmit: submit },
    el("h1", {}, "What do you want to index?"),
    el("p.lead", {}, "Stepgate analyses the source, proposes a pipeline and tries it on samples. ",
      "Nothing is indexed before you apply it."),
    model === null && el("div.banner.notable", {}, icon("warning"), el("div", {}, NO_MODEL), el("div.row", {}, el("a.button", { href: "#/models" }, "Connect a model"))),
    el("fieldset.choices", {}, el("legend.hidden", {}, "Kind of source"), Object.entries(KINDS).map(choice)),
    needs, picker, el("label", {}, label, where, hint), credentialRow,
    el("label", {}, "What is it for?", goal), el("div.row", {}, begin), problem));
}
