// What the terminal does, from the page: add photos, discover, accept the stage, export; with progress and a way to stop.

import { alarm, note } from "./announce.js";
import { get, post, Refusal } from "./api.js";
import { openDialog } from "./dialogs.js";
import { button, byId, el, grouped, plural } from "./dom.js";

// The step that is next: its name, what the button says, and how strongly.
export function nextStep({ outlook, discovered, job }) {
  if (job?.state === "running") return null;
  if (outlook.n_waiting) return ["discover", `Discover ${plural(outlook.n_waiting, "photo")}`, "primary"];
  if (outlook.state === "accepted") return ["add", "Add photos", "primary"];
  if (outlook.state === "discovered" && !discovered.is_current) return ["discover", "Discover again", ""];
  return null;
}

export async function begin(path, body) {
  try {
    await post(`work/${path}`, body);
    return true;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    alarm(error.message);
    return false;
  }
}

export function openSteps(page) {
  const { outlook, uses_paths: usesPaths, discovered } = page.overview;
  const run = (path, body) => async () => {
    dialog.close();
    if (await begin(path, body)) await page.poll();
  };
  const isOpen = outlook.state === "discovered" && !outlook.n_waiting;
  const steps = [
    ["Add photos", usesPaths ? "A folder of this machine. Photos stay where they are." : "Only from this machine itself: igcd add DIR FOLDER.", usesPaths,
      () => { dialog.close(); askFolder(page); }],
    [outlook.n_waiting ? `Discover ${plural(outlook.n_waiting, "photo")}` : "Discover again",
      outlook.n_waiting ? "Finds out what the new photos are." : "Decides again about everything you have not confirmed, with all you have said by now.",
      outlook.n_waiting > 0 || outlook.state === "discovered", run("discover", {})],
    [`Accept stage ${outlook.stage}`, isOpen ? "What you confirmed becomes labels, and the next photos build on it. It can be undone with igcd undo." : outlook.state === "accepted" ? "It is accepted already." : "Discover first.",
      isOpen, run("accept", {})],
    ["Export", usesPaths ? "A table, COCO, Label Studio, or a folder per category." : "Only from this machine itself: igcd export DIR --out FILE.", usesPaths,
      () => { dialog.close(); askExport(page); }],
  ];
  const rows = steps.map(([title, text, isPossible, act]) => el("li", {}, button(title, act, { disabled: !isPossible }), el("span", { class: "small muted", text })));
  const when = discovered.time ? `Last discovered ${new Date(discovered.time).toLocaleString([], { dateStyle: "medium", timeStyle: "short" })}.` : "Not discovered yet.";
  const dialog = openDialog("The stage", {
    body: [el("p", { text: page.summary() }), el("ol", { class: "steps" }, ...rows), el("p", { class: "small muted", text: when })],
    foot: [button("Close", () => dialog.close(), { kind: "primary", key: "Esc" })],
  });
}

// A path with completion: folders that begin like what is typed, and how many photos lie in each.
function pathField(label, value, { onEnter }) {
  const offers = el("ul", { class: "options", role: "listbox", id: "folders", "aria-label": "Folders" });
  const input = el("input", { type: "text", id: "path", role: "combobox", "aria-expanded": "true", "aria-controls": "folders", "aria-autocomplete": "list",
    autocomplete: "off", spellcheck: "false", autofocus: true, value });
  let shown = [];
  let active = -1;
  const highlight = () => {
    [...offers.children].forEach((offer, at) => offer.setAttribute("aria-selected", at === active));
    const offer = offers.children[active];
    if (offer) input.setAttribute("aria-activedescendant", offer.id);
    else input.removeAttribute("aria-activedescendant");
    offer?.scrollIntoView({ block: "nearest" });
  };
  const take = (at) => {
    if (!shown[at]) return;
    input.value = shown[at].path;
    input.focus();
    complete();
  };
  const complete = async () => {
    const asked = input.value;
    let folders = [];
    try {
      ({ folders } = await get(`work/folders?start=${encodeURIComponent(asked)}`));
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
    }
    if (input.value !== asked) return; // typed on meanwhile
    shown = folders;
    active = -1;
    offers.replaceChildren(...folders.map(({ path, n_photos: n }, at) => el("li", { class: "option path-option", role: "option", id: `folder-${at}`, on: { click: () => take(at) } },
      el("span", { class: "option-text", text: path }), el("span", { class: "small muted", text: n ? plural(n, "photo") : "" }))));
  };
  input.addEventListener("input", complete);
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      active = Math.min(shown.length - 1, Math.max(-1, active + step));
      highlight();
    } else if (event.key === "Tab" && !event.shiftKey && shown.length && input.value !== shown[Math.max(active, 0)].path) {
      take(Math.max(active, 0));
    } else if (event.key === "Enter" && !event.isComposing) {
      if (active >= 0) take(active);
      else onEnter();
    } else {
      return;
    }
    event.preventDefault();
  });
  complete();
  return { input, element: el("div", { class: "field" }, el("label", { for: "path", text: label }), input, offers) };
}

export function askFolder(page) {
  const add = async () => {
    if (!field.input.value.trim()) return;
    dialog.close();
    if (await begin("add", { path: field.input.value.trim() })) await page.poll();
  };
  const field = pathField("Folder of photos (Tab completes)", "", { onEnter: add });
  const dialog = openDialog("Add photos", {
    body: [field.element, el("p", { class: "small muted", text: "Photos are read where they lie, never moved or changed. What is there already is skipped." })],
    foot: [button("Cancel", () => dialog.close()), button("Add", add, { kind: "primary", key: "Enter" })],
  });
}

const SUFFIX = { csv: ".csv", coco: "-coco.json", labelstudio: "-labelstudio.json", folders: "-folders" };

function askExport(page) {
  const base = `${page.overview.folder}-export`;
  const kind = el("select", { id: "export-kind" }, ...[["csv", "a table (CSV)"], ["coco", "COCO"], ["labelstudio", "Label Studio"], ["folders", "a folder per category"]]
    .map(([value, text]) => el("option", { value, text })));
  const which = el("select", { id: "export-which" }, ...[["all", "everything; guesses are marked"], ["0.8", "confirmed, and guesses that are very likely"], ["confirmed", "only what is labeled or confirmed"]]
    .map(([value, text]) => el("option", { value, text })));
  const write = async () => {
    const chosen = which.value;
    const body = { kind: kind.value, path: field.input.value.trim(), confirmed_only: chosen === "confirmed", min_probability: chosen === "0.8" ? 0.8 : 0 };
    dialog.close();
    if (await begin("export", body)) await page.poll();
  };
  const field = pathField("Where to; must be new", base + SUFFIX.csv, { onEnter: write });
  kind.addEventListener("change", () => {
    field.input.value = base + SUFFIX[kind.value];
  });
  const dialog = openDialog("Export", {
    body: [el("div", { class: "field" }, el("label", { for: "export-kind", text: "Format" }), kind),
      el("div", { class: "field" }, el("label", { for: "export-which", text: "Photos" }), which), field.element],
    foot: [button("Cancel", () => dialog.close()), button("Export", write, { kind: "primary", key: "Enter" })],
  });
}

// The bar below the header while something is being done.
export function showJob(job) {
  const bar = byId("job");
  const isRunning = job?.state === "running";
  bar.hidden = !isRunning;
  if (!isRunning) return;
  if (!bar.hasChildNodes()) {
    bar.append(el("span", { class: "job-text", "aria-live": "polite" }), el("progress", { max: "1", "aria-label": "Progress" }),
      button("Cancel", () => begin("cancel", {}), { id: "cancel-job" }));
  }
  const [text, progress, cancel] = bar.children;
  const left = job.seconds_left > 2 ? `, about ${job.seconds_left > 90 ? `${Math.round(job.seconds_left / 60)} min` : `${Math.round(job.seconds_left)} s`} left` : "";
  const sentence = job.is_cancelling ? "stopping" : job.what || "beginning";
  text.textContent = job.n_all ? `${sentence}: ${grouped(job.n_done)} of ${grouped(job.n_all)}${left}` : `${sentence} …`;
  if (job.n_all) progress.value = job.n_done / job.n_all;
  else progress.removeAttribute("value");
  cancel.disabled = job.is_cancelling;
}

// What came out of something that was done, once.
export function tellJob(job) {
  const sentence = job.sentence ? job.sentence[0].toUpperCase() + job.sentence.slice(1) : "";
  if (job.state === "failed") alarm(sentence);
  else if (sentence) note(sentence);
}
