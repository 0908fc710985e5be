// One photo on the whole screen; arrows go on, Space selects.

import { button, el, percent, pictureUrl, plural } from "./dom.js";

// grid: the photos to go through; titleOf(photo): the category it is assigned to.
export function openLightbox(grid, index, { titleOf, canSelect }) {
  const image = el("img", { alt: "" });
  const caption = el("span");
  const choose = button("Selected", () => toggle(), { key: "Space", "aria-pressed": "false" });
  const dialog = el(
    "dialog",
    { class: "lightbox", "aria-label": "Photo" },
    el("figure", { tabindex: "-1", autofocus: true }, image),
    button("", () => go(-1), { picture: "back", label: "Previous photo", kind: "lightbox-step back" }),
    button("", () => go(1), { picture: "on", label: "Next photo", kind: "lightbox-step on" }),
    el("div", { class: "lightbox-foot" }, caption, canSelect ? choose : null,
      button("Close", () => dialog.close(), { key: "Esc" })),
  );
  const show = () => {
    const photo = grid.details.get(grid.ids[index]);
    image.src = pictureUrl(grid.ids[index]);
    image.alt = photo?.path ?? "";
    const size = photo?.width ? ` · ${photo.width} × ${photo.height}` : "";
    const held = photo ? ` · ${titleOf(photo)}, ${percent(photo.probability)}` : "";
    caption.textContent = `${index + 1} of ${plural(grid.ids.length, "photo")} · ${photo?.path ?? ""}${size}${held}`;
    choose.setAttribute("aria-pressed", grid.selection.has(grid.ids[index]));
  };
  const go = (step) => {
    index = Math.min(grid.ids.length - 1, Math.max(0, index + step));
    grid.goTo(index);
    show();
  };
  const toggle = () => {
    grid.toggle(index);
    show();
  };
  dialog.addEventListener("keydown", (event) => {
    if (event.key === "ArrowRight" || event.key === "ArrowDown") go(1);
    else if (event.key === "ArrowLeft" || event.key === "ArrowUp") go(-1);
    else if (event.key === " " && canSelect) toggle();
    else if (event.key === "Enter" && !event.target.closest("button")) dialog.close();
    else return;
    event.preventDefault();
  });
  dialog.addEventListener("close", () => {
    dialog.remove();
    grid.element.focus({ preventScroll: true });
  });
  document.body.append(dialog);
  show();
  dialog.showModal();
}

// A photo that is in no grid, like one of a look-alike.
export function openPicture(photo, title) {
  const dialog = el(
    "dialog",
    { class: "lightbox", "aria-label": "Photo" },
    el("figure", { tabindex: "-1", autofocus: true }, el("img", { src: pictureUrl(photo.id), alt: photo.path })),
    el("div", { class: "lightbox-foot" }, el("span", { text: `${title} · ${photo.path}` }),
      button("Close", () => dialog.close(), { key: "Esc" })),
  );
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
