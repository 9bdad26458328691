/** What can be made of an ended run: a fork from one of its steps, and what features offer, such as a recipe. */

import { may } from "./access.js";
import { Failure, get, post } from "./api.js";
import { attempt, el, fill, words } from "./dom.js";
import { actions, area, choice } from "./forms.js";
import { partsIn } from "./parts.js";

const EFFECTS = [["refuse", "Do not start"], ["keep", "Keep its result"], ["ask", "Ask me, then do it again"]];

/** The part of the page of an ended run that has them; null for a run that did nothing but write. */
export function runActions(run) {
  const steps = run.plan?.steps ?? [];
  if (!steps.some((step) => step.action !== "completion")) return null;
  return el("div.offers", {}, partsIn("run-offers").map((part) => offerOf(part, run)),
    el("details.offer", {}, el("summary", {}, "Fork from a step"), forkForm(run)));
}

/** What a feature offers for the run, once its module is loaded; hidden where that is nothing. */
function offerOf({ label, scope, load }, run) {
  const element = el("details.offer", { hidden: true });
  attempt(element, async () => {
    const content = (!scope || (await may(scope))) && (await load()).offer(run);
    element.hidden = !content;
    fill(element, el("summary", {}, label), content);
  });
  return element;
}

function forkForm(run) {
  const steps = run.plan.steps;
  const chosen = choice("Start from", "step", steps[0].id, steps.map((step) => [step.id, `${step.id}: ${title(step)}`]));
  const select = chosen.querySelector("select");
  const inputs = el("div");
  const effects = choice("If a later step changed something already", "effects", "refuse", EFFECTS);
  const draw = () => {
    const step = steps.find((one) => one.id === select.value);
    const hint = "JSON. $s1 stands for the result of another step. Edit it, or leave it as it is.";
    fill(inputs, step.action === "completion" ? el("p.quiet", {}, "The answer is written again.")
      : area("Inputs of this step", "args", JSON.stringify(step.args, null, 2), { rows: 5, hint, spellcheck: false }));
  };
  select.addEventListener("change", draw);
  draw();
  const start = async () => {
    const step = steps.find((one) => one.id === select.value);
    const written = inputs.querySelector("textarea")?.value;
    const args = written === undefined ? undefined : parse(written);
    const isEdited = args !== undefined && JSON.stringify(args) !== JSON.stringify(step.args);
    const body = { step: step.id, effects: effects.querySelector("select").value, ...(isEdited ? { args } : {}) };
    const { id } = await post(`v1/runs/${run.id}/fork`, body);
    await get(`v1/runs/${id}`);
    location.hash = `#/runs/${id}`;
  };
  return [el("form.form", { onsubmit: (event) => event.preventDefault() },
    el("p.quiet", {}, "A new run repeats this step and the steps that depend on it. Earlier results are kept."),
    chosen, inputs, effects), actions(["Start the fork", start, "primary"])];
}

const title = (step) => (step.action === "completion" ? "answer" : words(step.tool));

function parse(text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Failure(`The inputs are not valid JSON (${error.message})`);
  }
}
