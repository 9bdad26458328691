/** Rooms: list, form, copy, delete, and trying one in the chat. */

import { get, post, request } from "../api.js";
import { el } from "../dom.js";
import { actions, area, choice, code, field, part, selection } from "../forms.js";

export const about = "A room is an assistant: its instructions, its tools and when it asks. Choose one, or make a new one.";
export const add = "New room";

const WORDS = { shipped: "shipped", file: "file", managed: "managed" };
const APPROVALS = [["never", "Never"], ["side_effects", "Before it changes something"], ["always", "Before every plan"]];
const TIERS = [["fast", "The fast model"], ["high", "The strong model"]];

/** Returns the items of the list. */
export async function list() {
  const { data } = await get("v1/rooms");
  return data.map(({ id, name, description, origin, error }) => ({
    id, title: name, about: description, word: error ? "faulty" : WORDS[origin], state: error ? "blocking" : "" }));
}

/** The form of a room that can be edited, or a room as it is. */
export async function open(id, tasks) {
  const room = await get(`v1/rooms/${encodeURIComponent(id)}`);
  const editable = room.origin === "managed" && room.room;
  const head = el("header", {}, el("h1", {}, room.name), el("p.quiet", {}, room.description || "No description."),
    room.error && el("p.problem", { role: "alert" }, room.error),
    !editable && el("p.quiet", {}, "This room cannot be edited here. A copy of it can."));
  const path = `v1/rooms/${encodeURIComponent(id)}`;
  const copy = async () => {
    const made = await post(`${path}/copy`);
    if (made.id) tasks.go(made.id);
    else location.hash = `#/runs/${made.run_id}`; // a person must allow the programs that it starts
  };
  const remove = async () => {
    await request(`${path}?version=${encodeURIComponent(room.version)}`, { method: "DELETE" });
    tasks.leave();
  };
  const form = editable ? await roomForm(room.room) : null;
  const save = async () => {
    await request(path, { method: "PATCH", body: { version: room.version, ...form.read() } });
    tasks.go(id);
  };
  return [head,
    actions(["Try it", () => tasks.enterChat(id, room.suggestions[0] ?? ""), editable ? "" : "primary"], ["Copy", copy],
      editable && ["Delete", remove, "", `Delete the room ${room.name}? Its earlier runs stay.`]),
    form && part("Settings", form.element, actions(["Save", save, "primary"])),
    room.yaml && part("File", code(room.yaml, "The room's file"))];
}

/** The form of a new room. */
export async function create(tasks) {
  const form = await roomForm({ name: "", description: "", system_prompt: "", tools: null, skills: null });
  const save = async () => tasks.go((await post("v1/rooms", form.read({ onlySet: true }))).id);
  return [el("header", {}, el("h1", {}, "New room"), el("p.quiet", {}, "Only the name is required.")),
    form.element, actions(["Create room", save, "primary"])];
}

async function roomForm(room) {
  const none = { data: [] };
  const [tools, skills] = await Promise.all([get("v1/tools").catch(() => none), get("v1/skills").catch(() => none)]);
  const names = (found) => found.data.map((one) => one.name);
  const chosenTools = selection("Tools", names(tools), room.tools ?? null);
  const chosenSkills = selection("Skills", names(skills), room.skills ?? null);
  const element = el("form.form", { onsubmit: (event) => event.preventDefault() },
    field("Name", "name", room.name, { required: true, maxLength: 200 }),
    field("Description", "description", room.description, { hint: "What it is for, in one sentence" }),
    area("Instructions", "system_prompt", room.system_prompt, { rows: 7, hint: "What the assistant should know about its work" }),
    area("Suggestions", "suggestions", (room.suggestions ?? []).join("\n"), { rows: 3, hint: "Suggested requests, one per line" }),
    el("div.pair", {},
      choice("Ask for approval", "approval", room.approval ?? "never", APPROVALS),
      choice("Answers are written by", "answer_tier", room.answer_tier ?? "fast", TIERS)),
    chosenTools.element, chosenSkills.element);
  const read = ({ onlySet = false } = {}) => {
    const { name, description, system_prompt: prompt, suggestions, approval, answer_tier: tier } = Object.fromEntries(new FormData(element));
    const fields = { name, description, system_prompt: prompt, approval, answer_tier: tier,
      suggestions: suggestions.split("\n").map((line) => line.trim()).filter(Boolean),
      tools: chosenTools.read(), skills: chosenSkills.read() };
    if (!onlySet) return fields;
    const isSet = (value) => value !== null && value !== ""; // an empty list of tools is a choice: none of them
    return Object.fromEntries(Object.entries(fields).filter(([key, value]) => key === "name" || isSet(value)));
  };
  return { element, read };
}
