/** The beginning of a chat: what can be done here, the rooms, and requests to begin with. */

import { errorText, get } from "./api.js";
import { button, el, fill, keepLooking, short } from "./dom.js";
import { offer, report } from "./models.js";
import { partsIn, viewOf } from "./parts.js";

const LOOK_MS = 10_000; // between two looks for a model, while there is none

/** The welcome in `hero`, and the choices of the room in `rooms` and of its model in `picks`, which is hidden where there
 * is none. Calls `say(text)` for a pressed suggestion. */
export function welcome({ hero, rooms, picks, say, focus }) {
  let known = [];
  let choices = []; // rooms with a model
  let loading = null;
  let isWithoutModel = false;
  let models = null; // what this machine offers
  const offers = new Map(); // room -> what features offer in it, once they were asked
  rooms.addEventListener("change", draw);
  keepLooking(lookForModels, LOOK_MS);

  /** Loads the rooms once, or again if `room` is not known: the studio may have made it meanwhile. */
  function load(room = "", { afresh = false } = {}) {
    if (afresh || (room && !has(room))) loading = null;
    loading ??= fetchRooms();
    return loading;
  }

  async function fetchRooms() {
    try {
      const caller = get("v1/me").catch(() => null); // never a reason to show no rooms
      const { data } = await get("v1/models");
      known = data.filter((one) => !one.model);
      choices = data.filter((one) => one.model);
      isWithoutModel = (await caller)?.model === null;
      if (isWithoutModel) models = await report().catch(() => null);
      const chosen = rooms.value; // now: another may have been chosen while this was loaded
      fill(rooms, known.map((room) => el("option", { value: room.id }, room.name || room.id)));
      if (has(chosen)) rooms.value = chosen;
      draw();
    } catch (error) {
      loading = null;
      fill(hero, el("p.problem", { role: "alert" }, errorText(error)), el("div.row", {}, button("Try again", () => load(), { picture: "again" })));
    }
  }

  /** Offers the models of a program that was started after the page, while none is connected. */
  async function lookForModels() {
    const isTrying = () => hero.querySelector("button:disabled"); // its card says how that ends
    if (!isWithoutModel || !models || !hero.checkVisibility() || isTrying()) return;
    const now = await report({ quiet: true }).catch(() => models);
    if (isTrying()) return;
    if (now?.is_configured) return load("", { afresh: true });
    if (JSON.stringify(now?.found) === JSON.stringify(models.found)) return; // what a person is choosing stays
    models = now;
    draw();
  }

  /** Returns what features offer in a room by the last look; null until the first one has ended. Looks again. */
  function offersIn(room) {
    const asked = partsIn("room-offers").filter((part) => part.rooms.includes(room));
    if (!asked.length) return [];
    lookForOffers(room, asked);
    return offers.get(room) ?? null;
  }

  /** Asks features what they offer in a room, and draws it if it is something else than before. */
  async function lookForOffers(room, asked) {
    const changed = () => lookForOffers(room, asked);
    const lists = await Promise.all(asked.map((part) => part.load().then((module) => module.offer(room, changed)).catch(() => [])));
    const [now, before] = [lists.flat(), offers.get(room)];
    offers.set(room, now);
    if (before?.length !== now.length || now.some((one, at) => one !== before[at])) draw();
  }

  const has = (id) => known.some((one) => one.id === id);

  /** Chooses a room and, if it is still offered there, a model. */
  function choose(id, model = null) {
    if (has(id)) rooms.value = id;
    draw();
    picks.value = choices.some((one) => one.room === rooms.value && one.model === model) ? model : "";
  }

  function drawModels() {
    const offered = choices.filter((one) => one.room === rooms.value);
    const chosen = picks.value;
    fill(picks, el("option", { value: "" }, "Usual model"), offered.map(({ model }) => el("option", { value: model }, short(model))));
    picks.hidden = !offered.length;
    picks.value = offered.some(({ model }) => model === chosen) ? chosen : "";
  }

  function draw() {
    if (!known.length) return;
    const room = known.find((one) => one.id === rooms.value) ?? known[0];
    drawModels();
    const pick = (id) => {
      choose(id);
      focus();
    };
    const card = (one) =>
      el("button.card", { type: "button", "aria-pressed": String(one === room), onclick: () => pick(one.id) },
        el("b", {}, one.name || one.id), el("span", {}, one.description));
    const suggestion = (text) => el("button.suggestion", { type: "button", onclick: () => say(text) }, text);
    const offered = offersIn(room.id);
    fill(hero,
      el("h1", {}, "What do you want to do?"),
      isWithoutModel && unconnected(models),
      el("div.cards", { role: "group", "aria-label": "Rooms" }, known.filter((one) => !viewOf(one.id)).map(card)),
      offered?.length ? el("section.unconnected.offers", {}, offered) : offered && el("div.suggestions", {}, (room.suggestions ?? []).map(suggestion)));
  }

  /** The id to send to: the room, with the chosen model if any. */
  const target = () => (picks.value ? `${rooms.value}@${picks.value}` : rooms.value);

  /** Whether the chosen room takes pictures. */
  const sees = () => Boolean([...known, ...choices].find((one) => one.id === target())?.vision);

  /** Says why a picture cannot be sent to the chosen room, and where it can. */
  function describeVision() {
    const seeing = known.filter((one) => one.vision).map((one) => one.name || one.id);
    return seeing.length ? `Pictures can be sent to: ${seeing.join(", ")}. Choose one below.`
      : "No room here accepts pictures: none of the models in use is known to read them. Choose one that does in Models.";
  }

  return { load, draw, choose, has, target, sees, describeVision };
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
    connect || el("p.quiet", {}, "The operator of this gateway connects one with ", el("code", {}, "stepgate models use"), "."));
}
