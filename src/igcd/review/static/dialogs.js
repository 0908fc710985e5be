// Questions that need more than a key: a name, a category to choose; and help and history to read.

import { get } from "./api.js";
import { breakable, button, el, plural, thumbnail } from "./dom.js";
import { KEYS, singleKeysAreOn, switchSingleKeys } from "./keys.js";

export function openDialog(title, { body, foot = [], wide = false }) {
  const heading = el("h2", { text: title, id: "dialog-title" });
  const dialog = el(
    "dialog",
    { class: wide ? "dialog wide" : "dialog", "aria-labelledby": "dialog-title" },
    el("div", { class: "dialog-body" }, heading, ...body),
    foot.length ? el("div", { class: "dialog-foot" }, ...foot) : null,
  );
  const before = document.activeElement;
  dialog.addEventListener("close", () => {
    dialog.remove();
    if (before?.isConnected) before.focus({ preventScroll: true });
  });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

// Asks for a name. A name that is taken becomes the offer to merge, where onTaken is given.
export function askName({ title, now = "", verb = "Name", categories, onName, onTaken }) {
  const known = new Map(categories.filter(({ name }) => name).map((category) => [category.name.toLowerCase(), category]));
  const input = el("input", { type: "text", id: "name", maxlength: "200", autocomplete: "off", spellcheck: "false",
    autofocus: true, value: now, list: "names", "aria-describedby": "name-hint" });
  const names = el("datalist", { id: "names" }, ...[...known.values()].map(({ name }) => el("option", { value: name })));
  const hint = el("p", { class: "small muted", id: "name-hint", text: "Any text; a parent may stand before a slash, like Parus/Parus major." });
  const confirm = button(verb, () => submit(), { kind: "primary", key: "Enter" });
  const clean = () => input.value.trim().replace(/\s*\/\s*/g, "/").replace(/\s+/g, " ");
  const taken = () => (clean().toLowerCase() === now.toLowerCase() ? undefined : known.get(clean().toLowerCase()));
  const submit = () => {
    if (!clean()) {
      input.focus();
      return;
    }
    const other = onTaken && taken();
    dialog.close();
    if (other) onTaken(other);
    else onName(input.value);
  };
  input.addEventListener("input", () => {
    const other = onTaken && taken();
    confirm.firstChild.textContent = other ? `Merge into ${other.name}` : verb;
  });
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing) return;
    event.preventDefault();
    submit();
  });
  const field = el("div", { class: "field" }, el("label", { for: "name", text: "Name" }), input, names, hint);
  const dialog = openDialog(title, { body: [field], foot: [button("Cancel", () => dialog.close()), confirm] });
  input.select();
}

// Asks for one of the categories, most likely ones first; typing filters.
export function askCategory({ title, verb, likely, categories, onChoose, onNew }) {
  const rest = categories.filter(({ id }) => !likely.some((other) => other.id === id));
  rest.sort((a, b) => Number(a.name === null) - Number(b.name === null) || a.title.localeCompare(b.title));
  const all = [...likely.map((category) => ({ category, isLikely: true })), ...rest.map((category) => ({ category }))];
  let shown = [];
  let active = 0;
  const options = el("ul", { class: "options", role: "listbox", id: "options", "aria-label": "Categories" });
  const input = el("input", { type: "text", role: "combobox", "aria-expanded": "true", "aria-controls": "options",
    "aria-autocomplete": "list", "aria-label": "Filter the categories", autocomplete: "off", spellcheck: "false",
    autofocus: true, placeholder: "Type to filter" });
  const choose = (at) => {
    if (!shown[at]) return;
    dialog.close();
    if (shown[at].category) onChoose(shown[at].category);
    else onNew(input.value.trim());
  };
  const highlight = () => {
    [...options.children].forEach((option, at) => option.setAttribute("aria-selected", at === active));
    const option = options.children[active];
    if (option?.id) input.setAttribute("aria-activedescendant", option.id);
    option?.scrollIntoView({ block: "nearest" });
  };
  const filter = () => {
    const wanted = input.value.trim().toLowerCase();
    shown = all.filter(({ category }) => category.title.toLowerCase().includes(wanted)).slice(0, 200);
    if (onNew) shown.push({ category: null });
    active = 0;
    options.replaceChildren(...shown.map(({ category, isLikely }, at) => optionOf(category, isLikely, at)));
    highlight();
  };
  const optionOf = (category, isLikely, at) => {
    const newName = input.value.trim() ? `New category “${input.value.trim()}”` : "New category";
    const about = category ? `${isLikely ? "looks alike · " : ""}${plural(category.n_photos, "photo")}` : "split them off";
    const text = el("span", { class: "option-text" }, el("span", {}, ...breakable(category?.title ?? newName)),
      el("span", { class: "small muted", text: `  ${about}` }));
    return el("li", { class: "option", role: "option", id: `option-${at}`, on: { click: () => choose(at) } },
      category ? thumbnail(category.cover) : el("span", { class: "blank" }), text);
  };
  input.addEventListener("input", filter);
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      active = Math.min(shown.length - 1, Math.max(0, active + step));
      highlight();
    } else if (event.key === "Enter" && !event.isComposing) {
      choose(active);
    } else {
      return;
    }
    event.preventDefault();
  });
  const foot = [button("Cancel", () => dialog.close()), button(verb, () => choose(active), { kind: "primary", key: "Enter" })];
  const dialog = openDialog(title, { body: [input, options], foot });
  filter();
}

export function openHelp() {
  const groups = KEYS.map(({ title, keys }) =>
    el("section", {}, el("h3", { text: title }),
      el("dl", {}, ...keys.flatMap(([key, , meaning]) => [
        el("dt", {}, ...key.split(" ").map((part) => el("kbd", { text: part }))), el("dd", { text: meaning })]))));
  const single = el("input", { type: "checkbox" });
  single.checked = singleKeysAreOn();
  single.addEventListener("change", () => switchSingleKeys(single.checked));
  const pointer = el("p", { class: "small muted", text: "With a mouse: click selects, Ctrl adds, Shift selects a range, dragging draws a frame, a double click shows the photo. On a tablet: tap to select." });
  const dialog = openDialog("Keys", {
    wide: true,
    body: [el("div", { class: "keys" }, ...groups), pointer],
    foot: [el("label", { class: "check" }, single, "Act on single letters"), el("span", { class: "grow" }),
      button("Close", () => dialog.close(), { kind: "primary", key: "Esc", autofocus: true })],
  });
}

export async function openHistory({ onUndo, canUndo }) {
  const { decisions } = await get("history");
  const entry = (decision) => {
    const classes = decision.is_undone ? "undone" : "";
    const time = new Date(decision.time).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
    const mayUndo = canUndo && !decision.is_undone && decision.kind !== "undo" && decision.kind !== "close";
    return el("li", {}, el("span", { class: classes, text: decision.sentence }),
      el("span", { class: "small muted", text: `${decision.author}, ${time}` }),
      mayUndo ? button("Undo", () => { dialog.close(); onUndo(decision.id); }, { "aria-label": `Undo: ${decision.sentence}` }) : null);
  };
  const nothing = el("p", { class: "muted", text: "Nothing was decided yet." });
  const list = el("ol", { class: "history" });
  const show = (author) => list.replaceChildren(...decisions.filter((decision) => !author || decision.author === author).map(entry));
  show("");
  const authors = [...new Set(decisions.map(({ author }) => author))].sort();
  const nOf = (author) => decisions.filter((decision) => decision.author === author).length;
  const who = el("select", { id: "history-author" }, el("option", { value: "", text: "everybody" }),
    ...authors.map((author) => el("option", { value: author, text: `${author} (${nOf(author)})` })));
  who.addEventListener("change", () => show(who.value));
  const several = authors.length > 1 ? [el("div", { class: "field" }, el("label", { for: "history-author", text: "Decided by" }), who)] : [];
  const dialog = openDialog("What was decided", {
    wide: true,
    body: [...several, decisions.length ? list : nothing],
    foot: [button("Close", () => dialog.close(), { kind: "primary", key: "Esc", autofocus: true })],
  });
}
