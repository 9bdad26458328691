/** Recipes: parameters, steps and trials; confirming a staged one, and running one in the chat. */

import { get, post, request } from "../api.js";
import { el, words } from "../dom.js";
import { actions, code, field, lines, part } from "../forms.js";

export const about = "Runs that were saved to be used again with other values. Open a run that went well and press “Save as recipe”.";

/** Returns the items of the list. */
export async function list() {
  const { data } = await get("v1/recipes");
  return data.map(({ name, description, state }) => ({
    id: name, title: `/${name}`, about: description, word: state, state: state === "staged" ? "notable" : "" }));
}

/** A recipe with what a person needs to confirm it. */
export async function open(name, tasks) {
  const path = `v1/recipes/${encodeURIComponent(name)}`;
  const recipe = await get(path);
  const isStaged = recipe.state === "staged";
  const names = isStaged && recipe.parameters.length > 0 && nameForm(recipe);
  const apply = async () => {
    const given = names ? [...new FormData(names)].map(([old, name]) => [old, name.trim() || old]) : [];
    const rename = Object.fromEntries(given.filter(([old, name]) => old !== name));
    await post(`${path}/apply`, { version: recipe.version, rename });
    tasks.go(name);
    await tasks.refresh();
  };
  const discard = async () => {
    await request(`${path}/discard`, { method: "POST", body: {} });
    if (recipe.is_applied) tasks.go(name);
    else tasks.leave();
    await tasks.refresh();
  };
  const remove = async () => {
    await request(path, { method: "DELETE" });
    tasks.leave();
    await tasks.refresh();
  };
  return [
    el("header", {}, el("h1", {}, `/${name}`), el("p", {}, recipe.description),
      el("p.facts", {}, el("span", {}, recipe.state), el("a", { href: `#/runs/${recipe.from_run}` }, "The run it was made from"))),
    isStaged && el("p.quiet", {}, "This recipe is staged: it cannot be called until you confirm it."),
    lines(recipe.notes),
    names && part("Names of the parameters", names),
    actions(isStaged && ["Confirm", apply, "primary"], isStaged && ["Discard", discard],
      ["Remove", remove, "", `Remove the recipe ${name}?`]),
    !isStaged && part("Run it", runForm(recipe, tasks)),
    part("Parameters", recipe.parameters.length ? lines(recipe.parameters.map(parameter)) : el("p.quiet", {}, "None: it does the same each time.")),
    part("Steps", el("ol.lines", {}, recipe.steps.map(step))),
    part("Trials", lines(recipe.trials.map(trial))),
    part("As a skill", code(recipe.files["SKILL.md"], "SKILL.md"))];
}

/** The names by which a call will give the parameters; a person may change them before confirming. */
function nameForm(recipe) {
  return el("form.form", { onsubmit: (event) => event.preventDefault() }, recipe.parameters.map((one) =>
    field(words(one.name), one.name, one.name, { hint: one.description, required: true })));
}

function runForm(recipe, tasks) {
  const element = el("form.form", { onsubmit: (event) => event.preventDefault() }, recipe.parameters.map((one) =>
    field(words(one.name), one.name, "", { hint: one.description, required: one.required,
      placeholder: one.example === null ? "" : String(one.example) })));
  const run = () => {
    const given = [...new FormData(element)].filter(([, value]) => value.trim());
    const call = given.map(([key, value]) => `${key}=${/^[\w.-]+$/.test(value) ? value : JSON.stringify(value)}`);
    tasks.enterChat("", [`/${recipe.name}`, ...call].join(" "));
  };
  return [element, actions(["Put it into the chat", run, "primary"])];
}

const parameter = ({ name, type, description, example, required }) =>
  `${name} (${type}${required ? "" : ", optional"}): ${description || "no description"}${example === null ? "" : `, such as ${JSON.stringify(example)}`}`;

function step(one) {
  const title = one.action === "completion" ? "write the answer" : words(one.tool);
  return el("li", {}, el("b", {}, title), " ", one.effect !== "read" && el("span.tag.notable", {}, "changes something"),
    Object.keys(one.args).length > 0 && code(JSON.stringify(one.args, null, 2), `Inputs of ${title}`));
}

function trial({ input, status, values, reason, tried, not_tried: left }) {
  const what = Object.entries(values).map(([key, value]) => `${key} = ${JSON.stringify(value)}`).join(", ");
  const parts = [`With ${input === "old" ? "the run's own" : "other"} values${what ? ` (${what})` : ""}: ${words(status)}`,
    reason, tried.length && `tried: ${tried.join(", ")}`, left.length && `not tried: ${left.join(", ")}`];
  return `${parts.filter(Boolean).join("; ")}.`;
}
