/** Beside a pipeline conversation: its pipeline, its uncertainties, and the form to apply it. */

import { get, post, errorText } from "../api.js";
import { button, confirming, count, el, fill, groupBy, icon, pause, words } from "../dom.js";

const RANKS = ["blocking", "notable", "info"];
const PICTURES = { blocking: "blocked", notable: "warning", info: "info" };
const TITLES = { blocking: "Blocking", notable: "Notable", info: "For information" };

const NONE = "No pipeline yet. It appears here when one is proposed.";

/** The panel of one conversation. Calls `asked(collection)` to query the finished collection, and `changed()` when the
 * conversation was applied or abandoned; `say(text)` sends a message to it. */
export function workbench({ conversationId, asked, changed, say }) {
  const doubts = new Map();
  const jobBox = el("div.job", { "aria-live": "polite" });
  const banner = el("div.banners", { "aria-live": "polite" });
  const preview = el("div.preview");
  const summary = el("summary", {}, "Pipeline");
  const placeholder = "Name of the collection";
  const name = el("input", { name: "collection", required: true, maxLength: 200, autocomplete: "off", placeholder });
  const force = el("input", { type: "checkbox", onchange: () => draw() });
  const forceRow = el("label.check", {}, force, "Apply despite blocking uncertainties");
  const apply = el("button.button.primary", { type: "submit" }, "Apply");
  const why = el("p.quiet", { id: "apply-why" });
  apply.setAttribute("aria-describedby", "apply-why");
  const form = el("form.apply", { onsubmit: submit }, el("label", {}, "Collection", name), forceRow, apply, why);
  const leave = confirming("Abandon this conversation", "Really abandon it?", abandon, { kind: "plain" });
  const narrow = matchMedia("(max-width: 60rem)");
  const element = el("details.bench", { open: !narrow.matches, "aria-label": "Pipeline" },
    summary, el("div.scroll", {}, banner, preview, form, jobBox, leave));
  narrow.addEventListener("change", () => (element.open = !narrow.matches));
  let pipeline = null;
  let status = "active";
  let analysed = null;

  function draw() {
    const open = status === "active" ? [...doubts.values()].filter((doubt) => !doubt.resolved) : [];
    const blocking = open.filter((doubt) => doubt.severity === "blocking").length;
    fill(banner, RANKS.map((rank) => bannerOf(rank, open.filter((doubt) => doubt.severity === rank))));
    fill(preview, pipeline ? drawn(pipeline, analysed) : el("p.quiet", {}, NONE));
    forceRow.hidden = !blocking;
    const isBlocked = blocking > 0 && !force.checked;
    apply.disabled = !pipeline || isBlocked || status !== "active";
    form.hidden = leave.hidden = status !== "active";
    why.textContent = !pipeline ? "There is nothing to apply yet."
      : isBlocked ? `${count(blocking, "question")} must be resolved first, or overridden.` : "";
    fill(summary, "Pipeline", pipeline && el("span.tag", {}, pipeline.template || "own"),
      blocking > 0 && el("span.tag.blocking", {}, `${blocking} blocking`));
  }

  /** One banner for each severity; identical messages are one line. */
  function bannerOf(rank, found) {
    if (!found.length) return null;
    const lines = groupBy(found, (one) => one.message);
    const line = ([message, same]) => el("li", {}, el("span", {}, message), leaveOut(same[0], rank),
      rank !== "info" && el("button.button.small", { type: "button", onclick: (event) => settle(event, same) }, "Resolved"));
    return el(`div.banner.${rank}`, { role: rank === "blocking" ? "alert" : "status" },
      icon(PICTURES[rank]), el("div", {}, el("b", {}, TITLES[rank]), el("ul", {}, [...lines].map(line))));
  }

  /** The button that leaves out the files that an uncertainty is about. */
  function leaveOut({ context }, rank) {
    const names = rank !== "info" && pipeline ? namesIn(context) : [];
    if (!names.length) return null;
    const word = `Leave out ${names.length === 1 ? names[0].split("/").at(-1) : count(names.length, "file")}`;
    return el("button.button.small", { type: "button", title: names.join(", "), onclick: (event) => {
      event.currentTarget.disabled = true;
      say(`exclude ${names.map(patternOf).join(" ")}`);
    } }, word);
  }

  async function settle(event, same) {
    event.currentTarget.disabled = true;
    try {
      for (const { id } of same)
        doubts.set(id, await post(`api/v2/agent/conversations/${conversationId}/uncertainties/${id}/resolve`));
      draw();
    } catch (error) {
      fill(jobBox, el("p.problem", { role: "alert" }, errorText(error)));
    }
  }

  async function abandon() {
    try {
      ({ status } = await post(`api/v2/agent/conversations/${conversationId}/abandon`));
      changed();
    } catch (error) {
      fill(jobBox, el("p.problem", { role: "alert" }, errorText(error)));
    }
    draw();
  }

  async function submit(event) {
    event.preventDefault();
    apply.disabled = true;
    fill(jobBox, el("p.quiet", {}, "Applying …"));
    try {
      const made = await post(`api/v2/agent/conversations/${conversationId}/apply`, {
        collection_name: name.value.trim(), force: force.checked });
      status = "applied";
      changed();
      draw();
      follow(made.job_id);
    } catch (error) {
      fill(jobBox, el("p.problem", { role: "alert" }, errorText(error)));
      draw();
    }
  }

  /** Shows the progress of a job until it has ended or the view is closed. */
  async function follow(jobId) {
    let delay = 300;
    try {
      do {
        const job = await get(`v1/jobs/${jobId}?wait_s=${delay / 1000}`);
        fill(jobBox, drawnJob(job, asked));
        if (job.status === "done" || job.status === "failed") return;
        delay = Math.min(2000, delay * 1.5);
        if (job.status === "interrupted") await pause(delay);
      } while (element.isConnected);
    } catch (error) {
      fill(jobBox, el("p.problem", { role: "alert" }, errorText(error)));
    }
  }

  draw();
  return {
    element,
    doubt(one) {
      doubts.set(one.id, one);
      draw();
    },
    pipeline(found) {
      pipeline = found;
      draw();
    },
    /** Shows the stored conversation. */
    known(detail) {
      const begins = detail.job_id && status !== "applied";
      ({ status } = detail);
      pipeline = detail.current_pipeline;
      analysed = detail.source_analysis;
      for (const one of detail.uncertainties) doubts.set(one.id, one);
      draw();
      if (begins) follow(detail.job_id);
    },
    suggest(text) {
      name.value ||= text;
    },
  };
}

const MOST_NAMES = 20;

/** The files, or endings of files, that an uncertainty names if it names all that it is about. */
function namesIn({ file, examples, total, extensions } = {}) {
  if (file) return [file];
  const endings = Object.keys(extensions ?? {});
  const names = endings.length ? endings : examples && total === examples.length ? examples : [];
  return names.length <= MOST_NAMES && endings.every((one) => one.startsWith(".")) ? names : [];
}

/** A pattern that `exclude` takes as one word, and that no kind of file is called. */
function patternOf(name) {
  const safe = name.replaceAll(/[\s,[\]*`]/g, "?").replace(/[?.!]$/, "*");
  return /^\w+$/.test(safe) ? `[${safe[0]}]${safe.slice(1)}` : safe;
}

/** The pipeline from source to index; alternative parsers are side by side. */
function drawn({ nodes, template }, analysed) {
  const rows = [...groupBy(nodes, (node) => node.kind)];
  const box = (node) => el("li.node", {}, el("b", {}, words(node.plugin)),
    node.file_types.length > 0 && el("span.tag", {}, node.file_types.join(", ")),
    Object.entries(node.options).map(([option, value]) => el("span.quiet", {}, `${words(option)} ${[value].flat().join(", ")}`)));
  return [
    el("p.quiet", {}, template ? `Template ${template}` : "A pipeline of its own",
      analysed?.total_files !== undefined && `, for ${count(analysed.total_files, "file")}`),
    el("ol.flow", {}, rows.map(([kind, found]) =>
      el("li", {}, el("span.kind", {}, kind), el("ul", {}, found.map(box))))),
  ];
}

function drawnJob({ status, collection, progress, report, failure, next }, asked) {
  const { done, total, current } = progress;
  const bar = el("progress", { "aria-label": "Reading" });
  if (status === "done") Object.assign(bar, { max: 1, value: 1 });
  else if (total) Object.assign(bar, { max: total, value: done });
  const said = status === "done" ? `${count(report?.read ?? done, "document")} read into ${collection}.`
    : status === "failed" ? failure?.message : total ? `${done} of ${total} read` : words(status);
  return [
    status !== "failed" && bar,
    el(status === "failed" ? "p.problem" : "p", {}, said),
    status === "running" && current && el("p.quiet.cut", {}, current),
    next && el("p.quiet", {}, next),
    report?.left_out > 0 && el("p.quiet", {}, `${count(report.left_out, "file")} left out by the pipeline.`),
    (report?.skipped ?? []).length > 0 && el("p.quiet", {}, `${count(report.skipped.length, "file")} could not be read.`),
    status === "done" && button("Ask about it", () => asked(collection), { picture: "send" }),
  ].filter(Boolean);
}
