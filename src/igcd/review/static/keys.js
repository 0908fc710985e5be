// Which key does what: the help shows this table, the page acts on it.

export const KEYS = [
  {
    title: "The category",
    keys: [
      ["N", "name", "name it, which also accepts it"],
      ["A", "accept", "accept it, a name can come later"],
      ["M", "merge", "merge it into another category"],
      ["1 2 3", null, "it is the 1st, 2nd, 3rd that it looks most like"],
      ["U", "unsure", "not sure: to the end of the queue"],
      ["R", "reject", "reject it: its photos are unsure again"],
    ],
  },
  {
    title: "Selected photos",
    keys: [
      ["S", "split", "split them off as a new category"],
      ["Shift+S", "split-named", "split them off under a name"],
      ["V", "move", "move them to another category"],
      ["1 2 3", null, "move them to the 1st, 2nd, 3rd look-alike"],
      ["C", "confirm", "confirm their category"],
      ["U", "unsure", "not sure about them"],
    ],
  },
  {
    title: "Choosing photos",
    keys: [
      ["Arrows", null, "go from photo to photo, with Shift selecting"],
      ["Space", null, "select or leave out"],
      ["Ctrl+A", null, "select all"],
      ["Esc", null, "select none"],
      ["Enter", null, "show on the whole screen"],
      ["Home End", null, "most typical, least typical"],
      ["+ −", null, "larger, smaller photos"],
    ],
  },
  {
    title: "Going around",
    keys: [
      ["J K", null, "next, previous in the list"],
      ["Q", "tab-new", "new categories"],
      ["L", "tab-check", "known ones with low confidence"],
      ["X", "tab-unsure", "unsure photos"],
      ["B", "tab-known", "known categories"],
      ["G", "tab-map", "the map"],
    ],
  },
  {
    title: "Any time",
    keys: [
      ["Z", "undo", "undo, also Ctrl+Z"],
      ["Y", "redo", "redo, also Ctrl+Y"],
      ["H", "history", "what was decided"],
      ["?", "help", "this help"],
    ],
  },
  {
    title: "On the map",
    keys: [
      ["Arrows", null, "move the view"],
      ["+ −", null, "nearer, farther"],
      ["Enter", null, "select all photos in view"],
      ["0", null, "show all of it"],
    ],
  },
];

const ACTION_OF = new Map(
  KEYS.flatMap((group) => group.keys.filter(([, action]) => action).map(([key, action]) => [key.toLowerCase(), action])),
);
ACTION_OF.set("j", "next").set("k", "previous").set("1", "near-1").set("2", "near-2").set("3", "near-3");
ACTION_OF.set("+", "larger").set("=", "larger").set("-", "smaller").set("?", "help");
const WITH_CONTROL = { z: "undo", "shift+z": "redo", y: "redo" };

const isTyping = (target) => target.closest?.("input:not([type=checkbox]), textarea, select, [contenteditable]");

// The action a key press stands for, or null. Single letters can be switched off, for those who dictate to a computer.
export function actionOf(event, { singleKeys }) {
  if (event.altKey || event.isComposing || isTyping(event.target)) return null;
  const key = (event.shiftKey && event.key.length === 1 && /[a-z]/i.test(event.key) ? "shift+" : "") + event.key.toLowerCase();
  if (event.ctrlKey || event.metaKey) return WITH_CONTROL[key] ?? null;
  if (!singleKeys && key !== "?") return null;
  return ACTION_OF.get(key) ?? null;
}

const SETTING = "igcd-single-keys";

export const singleKeysAreOn = () => localStorage.getItem(SETTING) !== "off";

export const switchSingleKeys = (on) => localStorage.setItem(SETTING, on ? "on" : "off");
