/** Picking a folder of the gateway's machine, one level at a time, below the folders that may be read. */

import { errorText, get } from "./api.js";
import { button, count, el, fill, icon } from "./dom.js";

/** The list. Calls `pick(path)` with each folder that is looked into, "" at the top. */
export function folderPicker(pick) {
  const here = el("p.quiet", { role: "status" });
  const list = el("ul.folders");
  const element = el("div.picker", {}, here, list);

  async function open(path = "") {
    pick(path);
    try {
      const found = await get(`v1/sources/folders${path ? `?path=${encodeURIComponent(path)}` : ""}`);
      fill(here, path ? `${path}: ${[count(found.files, "file"), count(found.folders.length, "folder")].join(", ")}${found.is_cut ? ", and more" : ""}` : top(found.folders));
      fill(list,
        path && el("li", {}, button("Up", () => open(found.parent ?? ""), { kind: "plain", picture: "left" })),
        found.folders.map((one) => el("li", {}, el("button.item", { type: "button", title: one.path, onclick: () => open(one.path) }, icon("folder"), el("span.cut", {}, one.name)))));
    } catch (error) {
      fill(here, el("span.problem", { role: "alert" }, errorText(error)), button("Back to the top", () => open(), { kind: "plain" }));
      fill(list);
    }
  }

  open();
  return element;
}

const top = (roots) => (roots.length ? "Folders that may be read here:"
  : "No folder may be read here yet. Put files into “files” in the data folder, or have the operator name folders in AGENT_FILE_ROOTS.");
