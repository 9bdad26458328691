/** Picking a folder of the gateway's machine, one level at a time, below the folders that may be read. */

import { me } from "../access.js";
import { errorText, get, post, request } from "../api.js";
import { button, count, el, fill, icon } from "../dom.js";

/** The list. Calls `pick(path)` with each folder that is looked into, "" at the top. */
export function folderPicker(pick) {
  const here = el("p.quiet", { role: "status" });
  const list = el("ul.folders");
  const others = otherFolders(() => open());
  const element = el("div.picker", {}, here, list, others.element);

  async function open(path = "") {
    pick(path);
    others.element.hidden = Boolean(path);
    try {
      const found = await get(`v1/sources/folders${path ? `?path=${encodeURIComponent(path)}` : ""}`);
      fill(here, path ? `${path}: ${[count(found.files, "file"), count(found.folders.length, "folder")].join(", ")}${found.is_cut ? ", and more" : ""}` : top(found.folders));
      fill(list,
        path && el("li", {}, button("Up", () => open(found.parent ?? ""), { kind: "plain", picture: "left" })),
        found.folders.map((one) => el("li", {}, el("button.item", { type: "button", title: one.path, onclick: () => open(one.path) }, icon("folder"), el("span.cut", {}, one.name, hasTwin(found.folders, one.name) && el("span.quiet", {}, ` in ${one.path.slice(0, -one.name.length - 1) || "/"}`))))));
    } catch (error) {
      fill(here, el("span.problem", { role: "alert" }, errorText(error)), button("Back to the top", () => open(), { kind: "plain" }));
      fill(list);
    }
  }

  open();
  others.load();
  return element;
}

/** Folders that are not below those that may be read: who may add one does it here; others read who can. */
function otherFolders(changed) {
  const path = el("input", { maxLength: 4000, autocomplete: "off", placeholder: "/home/anna/Documents/papers", "aria-label": "Path of another folder" });
  const said = el("p.quiet", { role: "status" });
  const added = el("ul.lines");
  const inside = el("div.inside.flush");
  const element = el("details.offer", {}, el("summary", {}, "A folder that is not listed"), inside);
  const allow = button("Allow reading", add);
  path.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault(); // the form around it is not what is sent
    add();
  });

  async function load() {
    const { scopes } = await me();
    if (!scopes.includes("admin")) return fill(inside, el("p.quiet", {}, WHO_CAN));
    try {
      draw(await get(ROOTS));
    } catch (error) {
      fill(inside, el("p.problem", { role: "alert" }, errorText(error)));
    }
  }

  function draw({ data, obstacle }) {
    const remove = (one) => el("li", {}, el("span", {}, one.path), " ", button("Do not read it", () => change(() => request(`${ROOTS}?path=${encodeURIComponent(one.path)}`, { method: "DELETE" }).then((response) => response.json())), { kind: "plain" }));
    fill(added, obstacle ? [] : data.filter((one) => one.is_added).map(remove));
    if (obstacle) return fill(inside, el("p.quiet", {}, `${obstacle[0].toUpperCase()}${obstacle.slice(1)}.`));
    fill(inside, el("p.quiet", {}, ALLOWED), el("div.row", {}, path, allow), said, added);
  }

  function add() {
    if (path.value.trim()) change(() => post(ROOTS, { path: path.value.trim() }), "It may be read now.");
  }

  async function change(act, done = "") {
    allow.disabled = true;
    try {
      draw(await act());
      fill(said, done);
      path.value = "";
      changed();
    } catch (error) {
      fill(said, el("span.problem", { role: "alert" }, errorText(error)));
    }
    allow.disabled = false;
  }

  return { element, load };
}

const hasTwin = (folders, name) => folders.filter((one) => one.name === name).length > 1;

const ROOTS = "v1/admin/file-roots";
const ALLOWED = "Everyone who uses this gateway, and the tools of its models, may then read all files in the folder.";
const WHO_CAN = "The operator adds it, on the page on the gateway’s machine or with: stepgate file-roots add FOLDER";

const top = (roots) => (roots.length ? "Folders that may be read here:"
  : "No folder may be read here yet. Put files into “files” in the data folder, or add a folder below.");
