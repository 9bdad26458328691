/** On the page of a run that went well: saving it as a recipe. */

import { post } from "../api.js";
import { el } from "../dom.js";
import { actions, field } from "../forms.js";

/** The form; null for a run that did not succeed. */
export const offer = (run) => (run.status === "succeeded" ? recipeForm(run) : null);

function recipeForm(run) {
  const element = el("form.form", { onsubmit: (event) => event.preventDefault() },
    el("p.quiet", {}, "The plan becomes a skill with parameters that runs without another plan. It is tried, and you confirm it before it is used."),
    field("Name", "name", "", { hint: "Optional: lowercase words joined by hyphens", maxLength: 64 }));
  const save = async () => {
    const { name } = Object.fromEntries(new FormData(element));
    const recipe = await post(`v1/runs/${run.id}/recipe`, name.trim() ? { name: name.trim() } : {});
    location.hash = `#/studio/recipes/${encodeURIComponent(recipe.name)}`;
  };
  return [element, actions(["Create recipe", save, "primary"])];
}
