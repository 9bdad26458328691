/** The beginning of a chat: what can be done here, the rooms, and requests to begin with. */

import { errorText, get } from "./api.js";
import { button, el, fill } from "./dom.js";
import { offer, report } from "./models.js";

const SUGGESTIONS = {
  stepgate: ["What is 17.5 * 240, and what time is it in Stockholm?", "Remember that I prefer short answers."],
  knowledge: ["What do my documents say about escalation?"],
  incident: ["P1 incident: user profile picture errors causing latency and failures."],
  chat: ["Explain in three sentences what an event log is."],
};
const BUILDER = "pipelines"; // has a view of its own

/** The welcome in `hero`, and the choice of the room in `rooms`. Calls `say(text)` for a pressed suggestion. */
export function welcome({ hero, rooms, say, focus }) {
  let known = [];
  let loading = null;
  let isWithoutModel = false;
  let models = null; // what this machine offers
  rooms.addEventListener("change", draw);

  /** Loads the rooms once, or again if `room` is not known: the studio may have made it meanwhile. */
  function load(room = "", { afresh = false } = {}) {
    if (afresh || (room && !has(room))) loading = null;
    loading ??= fetchRooms();
    return loading;
  }

  async function fetchRooms() {
    try {
      const chosen = rooms.value;
      const ready = fetch("ready").then((response) => response.json()).catch(() => null); // never a reason to show no rooms
      known = (await get("v1/models")).data;
      isWithoutModel = Boolean((await ready)?.components?.models?.detail.includes("rules mode"));
      if (isWithoutModel) models = await report().catch(() => null);
      fill(rooms, known.map((room) => el("option", { value: room.id }, room.name || room.id)));
      if (has(chosen)) rooms.value = chosen;
      draw();
    } catch (error) {
      loading = null;
      fill(hero, el("p.problem", { role: "alert" }, errorText(error)), button("Try again", () => load(), { picture: "again" }));
    }
  }

  const has = (id) => known.some((one) => one.id === id);

  function choose(id) {
    if (has(id)) rooms.value = id;
    draw();
  }

  function draw() {
    if (!known.length) return;
    const room = known.find((one) => one.id === rooms.value) ?? known[0];
    const pick = (id) => {
      choose(id);
      focus();
    };
    const card = (one) =>
      el("button.card", { type: "button", "aria-pressed": String(one === room), onclick: () => pick(one.id) },
        el("b", {}, one.name || one.id), el("span", {}, one.description));
    const suggestion = (text) => el("button.suggestion", { type: "button", onclick: () => say(text) }, text);
    fill(hero,
      el("h1", {}, "What do you want to do?"),
      isWithoutModel && unconnected(models),
      el("div.cards", { role: "group", "aria-label": "Rooms" }, known.filter((one) => one.id !== BUILDER).map(card)),
      el("div.suggestions", {}, (room.suggestions?.length ? room.suggestions : SUGGESTIONS[room.id] ?? []).map(suggestion)));
  }

  return { load, draw, choose, has };
}

/** What is said without a model, with the models that this machine offers. */
function unconnected(models) {
  const connect = models && el("a.button", { href: "#/models" }, "Connect a model");
  if (models?.found?.length)
    return el("section.unconnected", {}, el("h2", {}, "A model is one click away"),
      el("ul.cardlist", {}, models.found.map(offer)),
      el("p.quiet", {}, "Nothing is sent to it before you choose it. ", el("a", { href: "#/models" }, "Another model")));
  return el("section.unconnected", {},
    el("p", {}, "No language model is connected. Arithmetic, time, notes and quotations from your documents work without one."),
    connect || el("p.quiet", {}, "Who runs this gateway connects one with ", el("code", {}, "stepgate models use"), "."));
}
