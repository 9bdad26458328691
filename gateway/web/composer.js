/** The message box: Enter sends, Shift+Enter adds a line; during an answer the button stops it. Pictures and files are
 * attached by a button or by pasting them. */

import { may } from "./access.js";
import { el, fill, icon, isComposing } from "./dom.js";
import { partIn } from "./parts.js";

/** Calls `send(text)` with the message, and `stop()` while busy. `aside` is shown beside the button. `attach(files)` gets
 * files that were chosen or pasted; `tray` shows what is attached, and `canSend()` whether that alone is a message. */
export function composer({ label, placeholder, send, stop = null, aside = null, attach = null, tray = null, canSend = () => false }) {
  const box = el("textarea", { rows: 1, placeholder, "aria-label": label, enterKeyHint: "send", dir: "auto" });
  const press = el("button.send", { type: "submit" });
  const files = el("input", { type: "file", multiple: true, hidden: true, onchange: () => give(files.files) });
  const clip = attach && el("button.tool.clip", { type: "button", title: "Attach files or pictures", "aria-label": "Attach files or pictures", onclick: () => files.click() }, icon("clip"));
  const form = el("form.composer", { onsubmit: submit }, tray, box, el("div.row", {}, clip, aside, el("span.grow"), press), attach && files);
  let isBusy = false;

  function submit(event) {
    event?.preventDefault();
    if (isBusy) return stop?.();
    const text = box.value.trim();
    if (!text && !canSend()) return box.focus();
    box.value = "";
    grow();
    send(text);
  }

  function give(chosen) {
    if (chosen?.length) attach([...chosen]);
    files.value = "";
    box.focus();
  }

  function grow() {
    box.style.height = "auto";
    box.style.height = `${Math.min(box.scrollHeight, 240)}px`;
  }

  function busy(value) {
    isBusy = value;
    fill(press, icon(value ? "stop" : "send"));
    press.disabled = value && !stop;
    press.setAttribute("aria-label", value ? "Stop" : "Send");
    press.title = value ? "Stop" : "Send (Enter)";
  }

  box.addEventListener("input", grow);
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || isComposing(event)) return;
    event.preventDefault();
    if (!isBusy) submit();
  });
  if (attach) {
    const offer = async () => {
      const takesFiles = Boolean(partIn("attachments")) && (await may("ingest", { quiet: true }));
      clip.title = takesFiles ? "Attach files or pictures" : "Attach pictures";
      clip.setAttribute("aria-label", clip.title);
      files.accept = takesFiles ? "" : "image/*";
    };
    addEventListener("rightschange", offer); // once they are known, and when another key is used
    box.addEventListener("paste", (event) => {
      const { files, types } = event.clipboardData ?? {};
      if (!files?.length || types.includes("text/plain")) return; // cells of a sheet come with a picture of themselves
      event.preventDefault();
      give(files);
    });
  }
  busy(false);
  return { element: form, box, busy, grow, focus: () => box.focus() };
}
