/** Models: those in use with their state, those that this machine offers, and connecting one by its address. */

import { errorText, Failure, get, plain, post, send } from "./api.js";
import { alarm } from "./answer.js";
import { button, confirming, count, el, fill, icon, short } from "./dom.js";

const API = "v1/admin/models";
const stage = el("div.column.models");
export const view = el("section.view", { "aria-label": "Models" }, el("div.scroll", {}, stage));
const STATES = { reachable: "succeeded", unreachable: "failed", unused: "queued-off" };
let changed = () => {};

/** Calls `then()` when another model is in use. */
export const whenChanged = (then) => (changed = then);

/** Returns the report of the models; null for who may not see it. */
export async function report(options) {
  try {
    return await get(API, options);
  } catch (error) {
    if (error instanceof Failure && [401, 403, 404, 405].includes(error.status)) return null;
    throw error;
  }
}

export async function show() {
  if (!stage.childElementCount) fill(stage, el("h1", {}, "Models"), el("p.quiet", {}, "Looking …"));
  try {
    draw(await report());
  } catch (error) {
    fill(stage, el("h1", {}, "Models"), alarm(errorText(error)), button("Try again", show, { picture: "again" }));
  }
}

function draw(known) {
  if (known === null) return fill(stage, el("h1", {}, "Models"), forbidden());
  fill(stage,
    el("h1", {}, "Models"),
    el("p.lead", {}, known.is_configured
      ? `Requests go to ${inOrder(known.fast)}${known.high && known.high !== known.fast ? `; those that need more to ${inOrder(known.high)}` : ""}.`
      : "No model is connected. Arithmetic, time, notes and quotations from your documents work without one."),
    known.fault && alarm(known.fault),
    known.configured.length > 0 && el("section", {}, el("h2", {}, "In use"), el("ul.cardlist", {}, known.configured.map(configured))),
    el("section", {}, el("h2", {}, "On this machine"), onThisMachine(known)),
    el("section", {}, el("h2", {}, "By address"), byAddress(known)),
    el("section", {}, el("h2", {}, "A model file (GGUF)"), byFile()));
}

const forbidden = () =>
  el("p", {}, "The operator of this gateway chooses its models, with ", el("code", {}, "stepgate models use"), ", or here with a key that has the scope admin.");

function configured(one) {
  const away = confirming("Remove", "Really remove?",
    ({ currentTarget }) => act(currentTarget, () => send("DELETE", `${API}/${encodeURIComponent(one.name)}`)), { kind: "plain" });
  return el("li.cardrow", {},
    el("div", {}, el("b", { title: one.model }, el(`span.dot.${STATES[one.state]}`), short(one.model)),
      el("span.quiet", {}, [one.product || one.base_url || one.file, one.roles.length > 1 ? "for all work" : one.roles[0] === "fast" ? "for fast work" : "for hard work", one.source === "environment" && "set by the environment", one.has_key && "with a key", one.vision && "sees pictures"].filter(Boolean).join(" · ")),
      one.reason && el(one.state === "unused" ? "span.quiet" : "span.problem", {}, plain(one.reason))),
    one.source === "file" && away);
}

function onThisMachine({ found, configured: used, not_searched: obstacle }) {
  if (obstacle) return el("p.quiet", {}, `Not searched: ${obstacle}`);
  if (!found.length)
    return [
      el("p.quiet", {}, `${used.length ? "No other" : "None"} was found. Ollama, LM Studio, llama.cpp, vLLM and Jan are found while they run; nothing is used before you choose it.`),
      el("div.row", {}, button("Look again", show, { picture: "again" }))];
  return el("ul.cardlist", {}, found.map(offer));
}

/** One program of this machine with its models, and a button that takes one. */
export function offer({ product, base_url: url, models }) {
  const pick = el("select.pill", { "aria-label": `Model of ${product}` }, models.map((one) => el("option", { value: one.name }, label(one))));
  const name = () => models.find((one) => one.name === pick.value)?.short_name ?? pick.value;
  const use = button("", ({ currentTarget }) => act(currentTarget, () => post(API, { base_url: url, model: pick.value, product })), { kind: "primary", picture: "plug" });
  const write = () => (use.lastChild.textContent = `Use ${name()}`);
  use.append(el("span"));
  pick.addEventListener("change", write);
  write();
  return el("li.cardrow", {}, el("div", {}, el("b", {}, `${product} on this machine`),
    el("span.quiet", {}, models.length > 1 ? `${count(models.length, "model")} at ${url}` : url)), el("div.row", {}, models.length > 1 && pick, use));
}

/** Models that are asked in turn, as words. */
const inOrder = (names) => names.split(",").map(short).join(", or if that fails to ");

const label = ({ short_name: name, size_bytes: size }) => (size ? `${name} (${(size / 1e9).toFixed(1)} GB)` : name);

const field = (title, props, hint) => el("label", {}, title, el("input", { autocomplete: "off", spellcheck: false, ...props }), hint && el("span.quiet", {}, hint));

const byAddress = ({ example_url: example }) => connecting("Asking it; a model that has to be loaded first takes a while …",
  field("Address", { name: "base_url", inputMode: "url", required: true, placeholder: example }, "Of an OpenAI-compatible API."),
  field("Model", { name: "model", placeholder: "the first one that it lists" }, "Its name at that address."),
  field("Key", { name: "api_key", type: "password" }, "If it needs one. The gateway stores it, and sends it only to this address."));

const byFile = () => connecting("Loading it; a large file takes minutes …",
  field("File", { name: "file", required: true, placeholder: "/home/anna/models/qwen3-4b-q4.gguf" }, "Its path on the gateway's machine. The gateway runs it itself; no other program is needed."));

/** A form that tries a model by a real call, and saves it if it answers. `waiting` is said meanwhile. */
function connecting(waiting, ...fields) {
  const said = el("div", { role: "status" });
  const roles = el("select.pill", { name: "roles" }, [["fast,high", "all work"], ["fast", "fast work only"], ["high", "hard work only"]].map(([value, word]) => el("option", { value }, word)));
  const form = el("form.form", { onsubmit: (event) => event.preventDefault() }, fields,
    el("label", {}, "For", roles),
    el("div.row", {}, button("Use it", ({ currentTarget }) => attempt(currentTarget, true), { kind: "primary", picture: "plug" }),
      button("Only try it", ({ currentTarget }) => attempt(currentTarget, false))),
    said);

  async function attempt(press, keeps) {
    if (!form.reportValidity()) return;
    const given = Object.fromEntries([...new FormData(form)].filter(([name, value]) => value.trim() && name !== "roles").map(([name, value]) => [name, value.trim()]));
    fill(said, el("p.quiet", {}, el("span.pulse.inline"), ` ${waiting}`));
    press.disabled = true;
    try {
      const trial = await post(`${API}/test`, given);
      if (!trial.ok) return void fill(said, alarm(trial.reason));
      if (keeps) {
        const model = given.file ? undefined : trial.model; // a file names its model
        const at = given.file ? {} : { base_url: trial.base_url };
        draw(await post(API, { ...given, ...at, model, roles: roles.value.split(",") }));
        changed();
      } else fill(said, el("div.banner.info", {}, icon("done"), el("div", {}, `${trial.model} answered in ${trial.seconds.toFixed(1)} s: “${trial.reply}”`)));
    } catch (error) {
      fill(said, alarm(errorText(error).replace(/^base_url /, "The address ").replace(/^api_key /, "The key ")));
    } finally {
      press.disabled = false;
    }
  }

  return form;
}

/** Does something to the models with a button, and shows what there is then. */
async function act(press, action) {
  const box = press.closest(".cardrow");
  box.querySelector(".problem.said")?.remove();
  press.disabled = true;
  const word = press.textContent;
  press.lastChild.textContent = "Trying it …";
  try {
    const known = await action();
    changed();
    if (view.checkVisibility()) draw(known);
  } catch (error) {
    press.lastChild.textContent = word;
    press.disabled = false;
    box.append(el("p.problem.said", { role: "alert" }, errorText(error)));
  }
}

let lastBanner = null; // { detail, element }

/** The banner of a model that is down, from the gateway's own report of its readiness; null if all is well. It is the same
 * element until the report changes: one that is put in again is read out again. */
export function banner(ready, look) {
  const models = ready?.components?.models;
  if (!models || models.ok) return null;
  if (lastBanner?.detail !== models.detail) lastBanner = { detail: models.detail, element: makeBanner(models.detail, look) };
  return lastBanner.element;
}

function makeBanner(detail, look) {
  return el("div.banner.notable.across", { role: "alert" }, icon("warning"),
    el("div", {}, el("b", {}, "The model does not answer. "), plain(detail)),
    el("div.row", {}, button("Look again", look, { picture: "again" }), el("a.button", { href: "#/models" }, "Choose a model")));
}
