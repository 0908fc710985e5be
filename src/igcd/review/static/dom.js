// Elements without markup: text is always set as text, so that no name can become anything else.

const SVG = "http://www.w3.org/2000/svg";

const ICONS = {
  undo: "M8 5 4 9l4 4M4 9h9a5 5 0 0 1 0 10h-2",
  redo: "M12 5l4 4-4 4M16 9H7A5 5 0 0 0 7 19h2",
  history: "M4 10a6.500 6.500 0 1 1 2 4.700M4 15.500v-4h4M10 6.500V10l2.500 1.500",
  help: "M7.500 7.500a2.500 2.500 0 1 1 3.500 2.300c-.7.300-1 .8-1 1.700M10 14.200v.1M17.500 10a7.500 7.500 0 1 1-15 0 7.500 7.500 0 0 1 15 0Z",
  menu: "M3 5.500h14M3 10h14M3 14.500h14",
  close: "M5 5l10 10M15 5 5 15",
  back: "M12 4 6 10l6 6",
  on: "M8 4l6 6-6 6",
  larger: "M10 4v12M4 10h12",
  smaller: "M4 10h12",
  lasso: "M10 4c4 0 7 2 7 4.500S14 13 10 13s-7-2-7-4.500S6 4 10 4ZM7 13c-1.500 0-2 1-1.500 2s1.500 1.500 1 3",
  pan: "M10 2v16M2 10h16M7.500 4.500 10 2l2.500 2.500M7.500 15.500 10 18l2.500-2.500M4.500 7.500 2 10l2.500 2.500M15.500 7.500 18 10l-2.500 2.500",
  fit: "M3 7V3h4M13 3h4v4M17 13v4h-4M7 17H3v-4",
  fresh: "M10 3v3M10 14v3M3 10h3M14 10h3M5 5l2 2M13 13l2 2M15 5l-2 2M7 13l-2 2",
  check: "M3.500 10.500 8 15l8.500-9.500",
  unsure: "M7.200 7.400a2.800 2.800 0 1 1 4 2.600c-.8.400-1.200 1-1.200 2M10 15.400v.1",
  book: "M3 4.500C5.500 3.500 8 3.700 10 5c2-1.300 4.500-1.500 7-.5v11c-2.500-1-5-.8-7 .5-2-1.300-4.500-1.500-7-.5ZM10 5v11",
  find: "M13 13l4 4M14.500 8.500a6 6 0 1 1-12 0 6 6 0 0 1 12 0Z",
  stage: "M3.500 5h9M3.500 10h6M3.500 15h9M14 7.500l3 2.500-3 2.500",
  map: "M6 6.500h.1M10.500 5h.1M8 10h.1M14.500 8h.1M13 13.500h.1M6.500 14.500h.1M10 15.500h.1",
};

export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "text") node.textContent = value;
    else if (name === "on") for (const [type, listener] of Object.entries(value)) node.addEventListener(type, listener);
    else if (name === "dataset") Object.assign(node.dataset, value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "icon");
  svg.setAttribute("viewBox", "0 0 20 20");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", ICONS[name]);
  if (name === "map") path.setAttribute("stroke-width", "3");
  svg.append(path);
  return svg;
}

// A button with a text, or with an icon whose meaning is its label.
export function button(text, run, { kind = "", key = "", picture = "", label = "", ...rest } = {}) {
  const hint = key && el("kbd", { "aria-hidden": "true", text: key });
  const shortcut = key ? { "aria-keyshortcuts": key } : {};
  const classes = ["button", kind, picture && !text ? "icon-only" : ""].filter(Boolean).join(" ");
  const title = label && key ? `${label} (${key})` : label;
  return el(
    "button",
    { type: "button", class: classes, "aria-label": text ? undefined : label, title: title || undefined, ...shortcut, ...rest,
      on: { click: run } },
    picture ? icon(picture) : null, text ? el("span", { text }) : null, text && hint ? hint : null,
  );
}

// A long name as text that may break after underscores, slashes and hyphens.
export function breakable(text) {
  return text.split(/(?<=[_/-])/).flatMap((part, at) => (at ? [el("wbr"), part] : [part]));
}

export const byId = (id) => document.getElementById(id);

const numbers = new Intl.NumberFormat("en"); // to make one for each number takes longer than all else in a list

export const grouped = (n) => numbers.format(n);

export const plural = (n, one, many = `${one}s`) => `${grouped(n)} ${n === 1 ? one : many}`;

export const percent = (share) => `${Math.round(share * 100)}%`;

const pictureKey = document.body.dataset.pictureKey;

export const thumbnailUrl = (photoId) => `/api/photos/${photoId}/thumbnail?v=${pictureKey}`;

export const pictureUrl = (photoId) => `/api/photos/${photoId}/picture?v=${pictureKey}`;

export function thumbnail(photoId, alt = "") {
  if (photoId === null || photoId === undefined) return el("span", { class: "blank" });
  return el("img", { src: thumbnailUrl(photoId), alt, loading: "lazy", decoding: "async", draggable: "false" });
}

export const fileName = (path) => path.slice(path.lastIndexOf("/") + 1);
