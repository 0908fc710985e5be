// The lists on the left: tabs with counts, and below them the categories of the tab.

import { breakable, byId, el, grouped, icon, percent, plural, thumbnail } from "./dom.js";

export const TABS = [
  { id: "new", title: "New categories", picture: "fresh" },
  { id: "look", title: "Needs a look", picture: "unsure" },
  { id: "known", title: "Known categories", picture: "book" },
  { id: "checks", title: "Checks", picture: "check" },
  { id: "find", title: "Search", picture: "find" },
  { id: "map", title: "Map", picture: "map" },
];

export function showTabs(overview, current, onTab) {
  const counts = {
    new: overview.queue.length,
    look: overview.n_to_look,
    known: overview.categories.filter(isKnown).length,
  };
  byId("tabs").replaceChildren(
    ...TABS.map(({ id, title, picture }) =>
      el("button", { type: "button", class: "tab", id: `tab-${id}`, "aria-current": id === current ? "page" : undefined,
        on: { click: () => onTab(id) } },
      icon(picture), el("span", { text: title }),
      id in counts ? el("span", { class: "count", text: grouped(counts[id]) }) : null)),
  );
}

export const isKnown = (category) => category.state === "labeled" || category.state === "accepted";

// above: what stands over the list, a slider for example.
export function showCategories(categories, currentId, onOpen, above = null) {
  const list = byId("list");
  const scrolled = list.scrollTop;
  list.replaceChildren(
    ...(above ? [above] : []),
    el("ul", {}, ...categories.map((category) =>
      el("li", {}, el("button", { type: "button", class: "entry", "aria-current": category.id === currentId ? "true" : undefined,
        dataset: { category: category.id }, on: { click: () => onOpen(category.id) } },
      thumbnail(category.cover),
      el("span", { class: "entry-text" }, el("span", { class: "entry-title", title: category.title }, ...breakable(category.title)),
        el("span", { class: "entry-note", text: noteOf(category) })))))),
  );
  list.scrollTop = scrolled;
  list.querySelector('[aria-current="true"]')?.scrollIntoView({ block: "nearest" });
}

export function showText(text, above = null) {
  byId("list").replaceChildren(...(above ? [above] : []), el("p", { class: "small muted", text }));
}

function noteOf(category) {
  const parts = [plural(category.n_photos, "photo")];
  if (category.is_deferred) parts.push("put off");
  else if (category.state === "accepted") parts.push("accepted");
  else if (category.state === "discovered" && category.mean_probability !== null) parts.push(percent(category.mean_probability));
  return parts.join(" · ");
}
