/** How a collection is read: a template with its parameters as a form, tried on a sample before it is used. */

import { Failure, get, post } from "../api.js";
import { count, el, fill } from "../dom.js";
import { actions, choice, field } from "../forms.js";
import { readSources, usableSources } from "./jobs.js";

const SAMPLE = 20; // files that a trial reads

/** The form; null where all files were uploaded, because there is no source to read again. Calls `begun()` once it reads. */
export async function pipelineForm(detail, begun) {
  const sources = usableSources(detail);
  if (!sources.length) return null;
  const { data: templates } = await get("v1/pipelines/templates");
  const known = new Map(templates.map((one) => [one.name, one]));
  const own = known.has(detail.template) ? [] : [["", "As it is: a pipeline of its own"]];
  const kinds = choice("Kind of documents", "template", known.has(detail.template) ? detail.template : "", [...own, ...templates.map((one) => [one.name, one.title])]);
  const select = kinds.querySelector("select");
  const about = el("p.quiet");
  const fields = el("div.pair");
  const chosen = () => known.get(select.value);

  function draw() {
    const template = chosen();
    fill(about, template?.description ?? "It was made in Build. Choose a kind to read the documents by its template.");
    fill(fields, (template?.parameters ?? []).map((one) => inputOf(one, valueOf(one, template, detail))));
  }

  /** What the form says, as the gateway takes it. Throws what is wrong in words. */
  function wanted() {
    const template = chosen();
    if (!template) throw new Failure("Choose a kind of documents first.");
    if (!form.reportValidity()) throw new Failure("A value does not fit.");
    const given = new FormData(form);
    const read = template.parameters.map((one) => [one.name, parsed(given.get(one.name), one.value_schema.type)]);
    return { template: template.name, parameters: Object.fromEntries(read.filter(([, value]) => value !== null)) };
  }

  const attempt = async () => {
    const { summary, chunk_stats: stats } = await post("v1/pipelines/dry-run", { ...sources[0], ...wanted(), sample_count: SAMPLE });
    return stats.count ? `${summary} ${count(stats.count, "passage")}, half of them longer than ${count(Math.round(stats.median), "character")}.` : summary;
  };
  const read = async () => {
    await readSources(detail, wanted());
    await begun();
  };
  const form = el("form.form", { onsubmit: (event) => event.preventDefault() }, kinds, about, fields,
    actions(["Try it on a sample", attempt], ["Read again with it", read, "primary"]));
  select.addEventListener("change", draw);
  draw();
  return el("details.offer", {}, el("summary", {}, "How it is read"), form);
}

/** A parameter's value: that of the collection, or the template's own if the collection is read by another template. */
function valueOf({ node, option, default: usual }, template, { pipeline }) {
  const used = pipeline.template === template.name ? pipeline.nodes.find((one) => one.id === node)?.options[option] : undefined;
  return used ?? usual;
}

function inputOf({ name, description, value_schema: schema }, value) {
  const more = {
    string: { pattern: schema.pattern && schema.pattern.replace(/^\^|\$$/g, ""), maxLength: schema.maxLength },
    array: { placeholder: "none" },
  }[schema.type] ?? { type: "number", min: schema.minimum ?? 0, max: schema.maximum, step: schema.type === "integer" ? 1 : "any" };
  const props = Object.fromEntries(Object.entries(more).filter(([, one]) => one !== undefined));
  const hint = schema.type === "array" ? `${description}, separated by commas` : description;
  const word = name.replaceAll("_", " ");
  return field(word[0].toUpperCase() + word.slice(1), name, [value].flat().join(", "), { hint, ...props });
}

/** The value of a field; null for an empty one, which is the template's own. */
function parsed(text, type) {
  if (type === "array") return text.split(",").map((one) => one.trim()).filter(Boolean);
  if (!text.trim()) return null;
  return type === "string" ? text.trim() : Number(text);
}
