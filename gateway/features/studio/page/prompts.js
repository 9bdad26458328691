/** The prompt library: save, show, apply to a room, versions, remove. */

import { get, request, post } from "../api.js";
import { el, moment } from "../dom.js";
import { actions, area, choice, field, lines, part } from "../forms.js";

export const about = "Prompts that you saved. Choose one, or save a new one.";
export const add = "New prompt";

/** Returns the items of the list. */
export async function list() {
  const { data } = await get("v1/studio/prompts");
  return data.map(({ name, description, version }) => ({ id: name, title: name, about: description, word: `version ${version}` }));
}

/** A prompt with its versions and the rooms that it can be applied to. */
export async function open(name, tasks) {
  const path = `v1/studio/prompts/${encodeURIComponent(name)}`;
  const none = { data: [] };
  const [prompt, { data: versions }, { data: rooms }] = await Promise.all(
    [get(path), get(`${path}/versions`), get("v1/rooms").catch(() => none)]);
  const element = promptForm(prompt);
  const save = async () => {
    await request(path, { method: "PUT", body: { ...read(element), version: prompt.version } });
    tasks.go(name);
    await tasks.refresh();
  };
  const remove = async () => {
    await request(path, { method: "DELETE" });
    tasks.leave();
    await tasks.refresh();
  };
  const managed = rooms.filter((room) => room.origin === "managed");
  const target = choice("Room", "room", managed[0]?.id ?? "", managed.map((room) => [room.id, room.name]));
  const apply = async () => {
    const room = target.querySelector("select").value;
    await post(`${path}/apply`, { room });
    return `The room ${room} has this prompt now.`;
  };
  return [
    el("header", {}, el("h1", {}, name), el("p.quiet", {}, `Version ${prompt.version}, saved ${moment(prompt.saved_at)} by ${prompt.saved_by}`)),
    element, actions(["Save as a new version", save, "primary"], ["Remove", remove, "", `Remove the prompt ${name} with all of its versions?`]),
    part("Use it in a room", managed.length ? [target, actions(["Make it the room's instructions", apply])]
      : el("p.quiet", {}, "There is no room that can be edited here. Make or copy one first.")),
    part("Versions", lines(versions.map((one) => `Version ${one.version}, ${moment(one.saved_at)}: ${one.description || "no description"}`)))];
}

/** The form of a new prompt. */
export async function create(tasks) {
  const element = promptForm({ text: "", description: "" });
  const name = field("Name", "name", "", { required: true });
  element.prepend(name);
  const save = async () => {
    const { name: chosen, ...body } = { ...read(element), name: name.querySelector("input").value.trim() };
    const saved = await request(`v1/studio/prompts/${encodeURIComponent(chosen || " ")}`, { method: "PUT", body: { ...body, version: 0 } });
    tasks.go((await saved.json()).name);
    await tasks.refresh();
  };
  return [el("header", {}, el("h1", {}, "New prompt")), element, actions(["Save prompt", save, "primary"])];
}

const promptForm = ({ text, description }) => el("form.form", { onsubmit: (event) => event.preventDefault() },
  field("Description", "description", description, { hint: "What it is for" }), area("Text", "text", text, { rows: 12, required: true }));

function read(element) {
  const { text, description } = Object.fromEntries(new FormData(element));
  return { text, description };
}
