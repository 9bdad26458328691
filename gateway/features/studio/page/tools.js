/** Generated tools: code, tests and review of a staged version; apply, discard, change, restore, remove. */

import { may } from "../access.js";
import { get, post, request } from "../api.js";
import { el, words } from "../dom.js";
import { actions, area, code, field, lines, part } from "../forms.js";

export const about = "Tools that a model wrote and a person applied. Choose one to review it, or describe a new one.";
export const add = "New tool";

export const scope = "rooms"; // to make tools
export const none = "No tools of your own yet.";
export { catalogue as overview } from "./catalogue.js";

const MARKS = { staged: "notable", discarded: "", applied: "" };

/** Returns the items of the list. */
export async function list() {
  if (!(await may(scope))) return [];
  const { data } = await get("v1/studio/tools");
  return data.map(({ name, description, state, is_active: active, version }) => ({
    id: name, title: name, about: description, word: active ? `in use, version ${version}` : words(state), state: MARKS[state] ?? "" }));
}

/** A tool's newest version, with what a person needs to decide about it. */
export async function open(name, tasks) {
  const path = `v1/studio/tools/${encodeURIComponent(name)}`;
  const [tool, { data: versions }] = await Promise.all([get(path), get(`${path}/versions`)]);
  const decide = (verb) => async () => {
    await post(`${path}/${verb}`, { version: tool.version, ...(verb === "apply" && tool.sha256 ? { sha256: tool.sha256 } : {}) });
    tasks.go(name);
    await tasks.refresh();
  };
  const wish = area("What should change", "change", "", { rows: 3 });
  const refine = async () => {
    await post(`${path}/refine`, { change: wish.querySelector("textarea").value });
    tasks.go(name);
  };
  const remove = async () => {
    await request(path, { method: "DELETE" });
    tasks.leave();
    await tasks.refresh();
  };
  const isStaged = tool.state === "staged";
  return [
    el("header", {}, el("h1", {}, name), el("p", {}, tool.description),
      el("p.facts", {}, el("span", {}, `version ${tool.version}`), el("span", {}, tool.is_active ? "in use" : words(tool.state)),
        el("span", {}, `sandbox: ${words(tool.sandbox)}`), el("span", {}, `by ${tool.author}`))),
    isStaged && el("p.quiet", {}, "This version is staged: nothing can call it until it is applied."),
    actions(isStaged && ["Apply", decide("apply"), "primary"], isStaged && ["Discard", decide("discard")],
      ["Remove", remove, "", `Remove the tool ${name} with all of its versions?`]),
    part("What it may use", lines(permissions(tool.permissions)),
      tool.wider.length > 0 && el("p.problem", {}, "More than the version in use: ", tool.wider.join("; "))),
    tool.warnings.length > 0 && part("What to know before it is applied", lines(tool.warnings)),
    part("Code", code(tool.code, "Code")),
    part("Tests", el("p.quiet", {}, "All of these passed in the sandbox before the tool was staged."), code(tool.tests.join("\n\n"), "Tests")),
    part("Review by a model", el("p", {}, tool.review.approved ? "No veto." : "Vetoed.", ` Severity: ${tool.review.severity}.`),
      lines([...tool.review.issues, ...tool.review.suggestions])),
    part("Change it", wish, actions(["Make a changed version", refine])),
    part("Versions", el("ul.lines", {}, versions.map((one) => version(one, path, name, tasks)))),
  ];
}

/** The form that describes a new tool. */
export async function create(tasks) {
  const element = el("form.form", { onsubmit: (event) => event.preventDefault() },
    area("What the tool does", "description", "", { rows: 5, required: true, hint: "With an example of what goes in and what comes out" }),
    field("Name", "name", "", { hint: "Optional: lowercase words joined by _" }));
  const make = async () => {
    const { description, name } = Object.fromEntries(new FormData(element));
    tasks.go((await post("v1/studio/tools", { description, ...(name ? { name } : {}) })).name);
    await tasks.refresh();
  };
  return [el("header", {}, el("h1", {}, "New tool"),
    el("p.quiet", {}, "A model writes the tests, then the code; both are checked and tried in the sandbox. You decide whether it is used. This takes a minute or more.")),
  element, actions(["Create tool", make, "primary"])];
}

function version(one, path, name, tasks) {
  const restore = async () => {
    await post(`${path}/restore`, { version: one.version, ...(one.sha256 ? { sha256: one.sha256 } : {}) });
    tasks.go(name);
    await tasks.refresh();
  };
  const canRestore = !one.is_active && one.state === "applied";
  return el("li", {}, `Version ${one.version}: ${one.is_active ? "in use" : words(one.state)}`,
    canRestore && actions(["Use this version", restore]));
}

function permissions({ hosts, folders, tools, seconds, memory_mb: memory }) {
  const said = [hosts.length && `web hosts: ${hosts.join(", ")}`, folders.length && `folders: ${folders.join(", ")}`,
    tools.length && `tools: ${tools.join(", ")}`].filter(Boolean);
  return [...(said.length ? said : ["nothing besides computing"]), `at most ${seconds} s and ${memory} MB a call`];
}
