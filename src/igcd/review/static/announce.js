// Says what happened: to the eyes in a note at the bottom, to a screen reader in a live region.

import { button, byId, el } from "./dom.js";

const SHOWN_MS = 7000;
const MAX_NOTES = 3;
const LATE_MS = 400;
let nWaiting = 0;

export function say(sentence) {
  byId("live").textContent = "";
  requestAnimationFrame(() => {
    byId("live").textContent = sentence;
  });
}

export function note(sentence, buttons = []) {
  say(sentence);
  const toast = show(sentence, buttons, "toast");
  setTimeout(() => toast.remove(), SHOWN_MS);
}

// Stays until it is closed: something was not done.
export function alarm(sentence) {
  byId("alarm").textContent = sentence;
  show(sentence, [], "toast alarm");
}

// Shows that something is under way where it takes longer than a person notices.
export async function waitFor(promise) {
  nWaiting += 1;
  const late = setTimeout(() => document.body.classList.add("waiting"), LATE_MS);
  try {
    return await promise;
  } finally {
    clearTimeout(late);
    nWaiting -= 1;
    if (!nWaiting) document.body.classList.remove("waiting");
  }
}

export function clearNotes() {
  byId("toasts").replaceChildren();
}

function show(sentence, buttons, classes) {
  const toast = el("div", { class: classes }, el("span", { text: sentence }), ...buttons);
  toast.append(button("", () => toast.remove(), { kind: "quiet", picture: "close", label: "Close this note" }));
  const toasts = byId("toasts");
  toasts.append(toast);
  while (toasts.children.length > MAX_NOTES) toasts.firstChild.remove();
  return toast;
}
