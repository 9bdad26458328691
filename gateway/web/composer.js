/** The message box: Enter sends, Shift+Enter adds a line; during an answer the button stops it. */

import { el, fill, icon } from "./dom.js";

/** Calls `send(text)` with the message, and `stop()` while busy. `aside` is shown beside the button. */
export function composer({ label, placeholder, send, stop = null, aside = null }) {
  const box = el("textarea", { rows: 1, placeholder, "aria-label": label, enterKeyHint: "send" });
  const press = el("button.send", { type: "submit" });
  const form = el("form.composer", { onsubmit: submit }, box, el("div.row", {}, aside, el("span.grow"), press));
  let isBusy = false;

  function submit(event) {
    event?.preventDefault();
    if (isBusy) return stop?.();
    const text = box.value.trim();
    if (!text) return box.focus();
    box.value = "";
    grow();
    send(text);
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
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    if (!isBusy) submit();
  });
  busy(false);
  return { element: form, box, busy, focus: () => box.focus() };
}
