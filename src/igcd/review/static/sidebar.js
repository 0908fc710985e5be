// What stands in the list on the left for each tab, besides plain lists of categories.

import { get } from "./api.js";
import { breakable, button, byId, el, grouped, percent, plural, thumbnail } from "./dom.js";
import { GALLERIES, NO_WISH, wish } from "./views.js";

// How many new categories: a slider that decides again what nobody has confirmed.
export function granularitySlider(value, onChange) {
  const slider = el("input", { type: "range", min: "-2", max: "2", step: "0.5", value, id: "granularity", "aria-describedby": "granularity-hint" });
  slider.addEventListener("change", () => onChange(Number(slider.value)));
  return el("div", { class: "slider" }, el("label", { for: "granularity", text: "New categories" }),
    el("div", { class: "slider-row" }, el("span", { class: "small muted", text: "fewer" }), slider, el("span", { class: "small muted", text: "more" })),
    el("p", { class: "small muted", id: "granularity-hint", text: "What you have not confirmed is decided again." }));
}

// The groups around the one that is shown; there may be thousands.
export function showLooks({ looks, listed, growth }, currentId, { titleOf, onOpen }) {
  const list = byId("list");
  const scrolled = list.scrollTop;
  const after = Math.min(20, growth.length - 1);
  const expected = growth.length > 1
    ? `About ${percent(growth[0])} of the new photos are expected to be right now; after the first ${plural(after, "decision")} here, ${percent(growth[after])}.`
    : "";
  list.replaceChildren(...[el("p", { class: "small muted", id: "growth", text: expected }), curve(growth),
    el("ul", {}, ...listed.map((look) => {
      const title = look.best === null ? "no idea" : `${titleOf(look.best)}?`;
      const note = `${plural(look.n_photos, "photo")}${look.probability === null ? "" : ` · ${percent(look.probability)}`}`;
      return el("li", {}, el("button", { type: "button", class: "entry", "aria-current": look.id === currentId ? "true" : undefined,
        dataset: { look: look.id }, on: { click: () => onOpen(look.id) } }, thumbnail(look.cover),
      el("span", { class: "entry-text" }, el("span", { class: "entry-title" }, ...breakable(title)), el("span", { class: "entry-note", text: note }))));
    })), looks.length > listed.length ? el("p", { class: "small muted", text: `${listed.length} of ${plural(looks.length, "group")}; J goes on to the next.` }) : null].filter(Boolean));
  list.scrollTop = scrolled;
  list.querySelector('[aria-current="true"]')?.scrollIntoView({ block: "nearest" });
}

// The expected share of right photos over the decisions to come.
function curve(growth) {
  if (growth.length < 3) return null;
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "curve");
  svg.setAttribute("viewBox", "0 0 100 30");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  const line = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
  const low = growth[0];
  const high = Math.max(growth[growth.length - 1], low + 1e-6);
  line.setAttribute("points", growth.map((share, at) => `${(100 * at) / (growth.length - 1)},${28 - (26 * (share - low)) / (high - low)}`).join(" "));
  svg.append(line);
  return svg;
}

export async function showGalleries(currentId, onOpen) {
  const { galleries } = await get("galleries");
  byId("list").replaceChildren(el("ul", {}, ...Object.entries(GALLERIES).map(([id, [title]]) =>
    el("li", {}, el("button", { type: "button", class: "entry plain", "aria-current": id === currentId ? "true" : undefined,
      on: { click: () => onOpen(id) } }, el("span", { class: "entry-text" }, el("span", { class: "entry-title", text: title })),
    el("span", { class: "count", text: grouped(galleries[id]) }))))),
  el("p", { class: "small muted", text: GALLERIES[currentId]?.[1] ?? "" }));
}

const SAVED = "igcd-filters";
const saved = () => JSON.parse(localStorage.getItem(SAVED) ?? "{}");

const PLACE = /^\s*-?\d{1,3}(\.\d+)?°?\s*[,;\s]\s*-?\d{1,3}(\.\d+)?°?\s*$/; // what the server takes for a place

const TITLES = { kind: "", order: "", max_probability: "below ", min_probability: "at least ", stage: "stage ", since: "since ", until: "until ", near: "near ", place: "place " };

// What a filter is called: its conditions.
function nameOf(conditions) {
  const parts = Object.entries(conditions).filter(([name, value]) => value !== NO_WISH[name] && !(name === "within" && !conditions.near));
  return parts.map(([name, value]) => (name === "within" ? `${value} km` : `${TITLES[name] ?? ""}${value}`)).join(", ") || "all photos";
}

// What was typed last is not searched for any more: something else is opened.
export const dropSearch = () => clearTimeout(showSearch.timer);

// The conditions of a search; every change asks again.
export function showSearch({ stages, categories, onChange, onCategory }) {
  const ask = (delay) => {
    dropSearch();
    showSearch.timer = setTimeout(onChange, delay);
  };
  const field = (name, label, control, isComplete = () => true) => {
    control.id = `find-${name}`;
    control.value = wish[name];
    control.addEventListener(control.tagName === "SELECT" ? "change" : "input", () => {
      if (!isComplete(control.value)) return;
      wish[name] = control.value;
      ask(control.tagName === "SELECT" ? 0 : 250);
      if (name === "text") showNames();
    });
    return el("div", { class: "field" }, el("label", { for: control.id, text: label }), control);
  };
  const choice = (options) => el("select", {}, ...options.map(([value, text]) => el("option", { value, text })));
  const names = el("ul", { class: "names" });
  const showNames = () => {
    const wanted = wish.text.trim().toLowerCase();
    const found = wanted ? categories.filter(({ title }) => title.toLowerCase().includes(wanted)).slice(0, 8) : [];
    names.replaceChildren(...found.map((category) => el("li", {}, button(category.title, () => onCategory(category.id), { kind: "quiet" }))));
  };
  const again = () => showSearch({ stages, categories, onChange, onCategory });
  const filters = el("div", { class: "saved" });
  const showSaved = () => filters.replaceChildren(...Object.entries(saved()).map(([name, kept]) => el("span", { class: "chip-row" },
    button(name, () => { Object.assign(wish, NO_WISH, kept); onChange(); again(); }, { kind: "quiet" }),
    button("", () => { const rest = saved(); delete rest[name]; localStorage.setItem(SAVED, JSON.stringify(rest)); showSaved(); }, { picture: "close", label: `Forget the filter ${name}`, kind: "quiet" }))));
  const keep = () => {
    localStorage.setItem(SAVED, JSON.stringify({ ...saved(), [nameOf(wish)]: { ...wish } }));
    showSaved();
  };
  const clear = () => { Object.assign(wish, NO_WISH); onChange(); again(); };
  const folder = choice([["", "all"], ...(wish.folder ? [[wish.folder, wish.folder]] : [])]);
  const spots = el("datalist", { id: "spots" });
  byId("list").replaceChildren(el("form", { class: "search", role: "search", on: { submit: (event) => event.preventDefault() } },
    field("text", "Name or file", el("input", { type: "search", autocomplete: "off", spellcheck: "false" })), names,
    field("kind", "Which", choice([["", "all"], ["guessed", "guessed"], ["unsure", "unsure"], ["confirmed", "confirmed"], ["labeled", "came with a label"]])),
    field("order", "Order", choice([["uncertain", "least certain first"], ["certain", "most certain first"], ["newest", "newest first"], ["oldest", "oldest first"], ["file", "by file"], ["place", "from north to south"], ["stage", "by stage"]])),
    field("max_probability", "Certainty", choice([["", "any"], ["0.9", "below 90%"], ["0.7", "below 70%"], ["0.5", "below 50%"]])),
    field("min_probability", "Certain by at least", choice([["", "any"], ["0.5", "50%"], ["0.8", "80%"], ["0.9", "90%"]])),
    field("stage", "Stage", choice([["", "all"], ...stages.map(({ stage }) => [String(stage), `stage ${stage}`])])),
    field("folder", "Folder", folder),
    field("since", "Taken since", el("input", { type: "date" })),
    field("until", "Taken until", el("input", { type: "date" })),
    field("place", "Place", choice([["", "any"], ["known", "known"], ["unknown", "not known"]])),
    field("near", "Taken near", el("input", { type: "text", list: "spots", autocomplete: "off", placeholder: "48.1, 11.6" }), (value) => !value.trim() || PLACE.test(value)),
    spots,
    field("within", "Within", choice([["1", "1 km"], ["10", "10 km"], ["100", "100 km"], ["500", "500 km"], ["2000", "2,000 km"]])),
    el("div", { class: "search-actions" }, button("Keep this filter", keep, { kind: "quiet" }), button("Clear all", clear, { kind: "quiet" })), filters));
  showSaved();
  showNames();
  fillChoices(folder, spots);
}

// The folders and places there are; asked for after the form is there.
async function fillChoices(folder, spots) {
  try {
    const { folders, places } = await get("conditions");
    folder.replaceChildren(...[["", "all"], ...folders.map((path) => [path, path])].map(([value, text]) => el("option", { value, text })));
    folder.value = wish.folder;
    spots.replaceChildren(...places.map(({ latitude, longitude, n_photos: n }) => el("option", { value: `${latitude.toFixed(2)}, ${longitude.toFixed(2)}`, text: plural(n, "photo") })));
  } catch {
    // one can search without them
  }
}

// Categories as a tree: those most alike are together. A branch all of one parent has its name.
export async function showTree(categories, currentId, onOpen) {
  const { tree } = await get("tree");
  const leaf = (id) => {
    const category = categories.get(id);
    if (!category) return null;
    return el("li", {}, el("button", { type: "button", class: "entry", "aria-current": id === currentId ? "true" : undefined, on: { click: () => onOpen(id) } },
      thumbnail(category.cover), el("span", { class: "entry-text" }, el("span", { class: "entry-title" }, ...breakable(category.title)),
        el("span", { class: "entry-note", text: plural(category.n_photos, "photo") }))));
  };
  const parentsOf = (branch) => branch.category === null ? branch.parts.flatMap(parentsOf) : [categories.get(branch.category)?.parent ?? null];
  const draw = (branch, above) => {
    if (branch.category !== null) return leaf(branch.category);
    const parents = new Set(parentsOf(branch));
    const [parent] = parents;
    const title = parents.size === 1 && parent && parent !== above ? el("span", { class: "small muted branch-title", text: parent }) : null;
    return el("li", { class: "branch" }, title, el("ul", {}, ...branch.parts.map((part) => draw(part, parents.size === 1 ? parent : above))));
  };
  byId("list").append(tree ? el("ul", { class: "tree" }, draw(tree, null)) : el("p", { class: "small muted", text: "A tree needs two categories with photos." }));
}
