/** What screen readers say of an answer that is being written: what is done for it, and the whole of it at its end. Read out as
 * it grows, its words would be cut off by those that follow. */

const said = document.getElementById("said");

/** Has a line read out that is seen elsewhere. */
export function announce(line) {
  if (said.textContent !== line) said.textContent = line;
}

/** Notes whether an answer is being written. While it is, nothing within it is read out, not even a status. */
export function setBusy(answer, is) {
  answer.setAttribute("aria-busy", String(is));
  if (is) answer.setAttribute("aria-live", "off");
  else answer.removeAttribute("aria-live"); // as its log is
}
