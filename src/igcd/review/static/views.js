// The kinds of views: what each asks the server, what it is called, and what stands there when it is empty.

import { get, getBytes, post } from "./api.js";
import { readPlaces } from "./places.js";

// What a search asks for when nothing is asked for, and what it asks for now.
export const NO_WISH = { text: "", kind: "", order: "uncertain", stage: "", folder: "", since: "", until: "", place: "", near: "", within: "100", min_probability: "", max_probability: "" };
export const wish = { ...NO_WISH };

export const GALLERIES = {
  mistakes: ["Suspected mistakes", "Labels that came with the photos and are more likely wrong than right, judged by all other labels. C keeps the label, 1 corrects it."],
  duplicates: ["Near-duplicates", "The same shot twice: a burst, a copy at another size. One decision covers those of a group in the same category."],
  blurred: ["Blurred photos", "Photos with far less sharp edges than the others, the most blurred first."],
  dark: ["Dark photos", "The darkest first."],
  disagreements: ["Disagreements", "Photos that two people have put into different categories, as the later one has it."],
};

export function askFor(route) {
  switch (route.kind) {
    case "category": return get(`categories/${route.id}`);
    case "look": return get(`looks/${route.id}${route.otherwise === undefined ? "" : `?otherwise=${route.otherwise}`}`);
    case "similar": return post("similar", { photo_ids: route.ids, n: route.n });
    case "parts": return askForParts(route);
    case "gallery": return get(`galleries/${route.id}`);
    case "find": return get(`find?${new URLSearchParams(Object.entries(wish).filter(([, value]) => value !== ""))}`);
    case "map": return getBytes("map").then(readPlaces);
    default: return { photo_ids: [], photos: [], versions: {} }; // a tab without anything in it
  }
}

// The photos of a category, part by part.
async function askForParts(route) {
  const [{ category }, { parts, versions }] = await Promise.all([get(`categories/${route.id}`), get(`categories/${route.id}/parts?n=${route.n}`)]);
  return { category, parts, versions, photo_ids: parts.flat(), photos: [] };
}

export function headlineOf({ route, category }) {
  if (route.kind === "category") return category.title;
  if (route.kind === "parts") return `${category.title} in parts`;
  if (route.kind === "gallery") return GALLERIES[route.id]?.[0] ?? "Checks";
  return { new: "Nothing to review", known: "No known categories", look: "What needs a look", similar: "More like this", find: "Photos", map: "Map", checks: "Checks" }[route.kind];
}

export const EMPTY = {
  new: ["All new categories are decided", "Go through what needs a look, discover again with what you decided, or accept the stage."],
  known: ["No category is known yet", "Name or accept a new one."],
  look: ["Nothing needs a look", "Every photo is confirmed, in a new category, or very likely of a known one."],
  similar: ["Nothing is left to compare with", "Every photo is confirmed."],
  find: ["No photos found", "Take away a condition."],
  mistakes: ["No label is suspected", "None is more likely wrong than right, as the last discovery saw it."],
  duplicates: ["No near-duplicates", "No two photos show the same shot."],
  disagreements: ["No disagreements", "Nobody has put a photo elsewhere than somebody else."],
  gallery: ["Nothing here", "No photo is of this kind, or none was measured: a discovery measures the photos it embeds, not those whose features come from igcd embed."],
};
