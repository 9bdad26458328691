/** The window's title, which the browser shows on its tab: what is looked at, and how many questions wait. */

const subjects = {}; // view -> what is shown in it, such as a chat
let view = "";
let label = "";
let waiting = 0;

/** The view of this name is shown now; `word` is what a person calls it, if that is not its name. */
export function showView(name, word = "") {
  view = name;
  label = word || `${name.charAt(0).toUpperCase()}${name.slice(1)}`;
  draw();
}

/** Says what a view shows; "" for nothing that has a name. */
export function entitle(name, subject = "") {
  subjects[name] = subject;
  draw();
}

/** The number is seen where the page is one tab of many. */
export function showWaiting(number) {
  waiting = number;
  draw();
}

function draw() {
  const what = subjects[view] || label;
  document.title = `${waiting > 0 ? `(${waiting}) ` : ""}${what} · Stepgate`;
}
