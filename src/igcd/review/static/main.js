// The page: which view is open, what can be decided in it, and what happens then.

import { alarm, clearNotes, note, say } from "./announce.js";
import { get, post, Refusal } from "./api.js";
import { askCategory, askName, openHelp, openHistory } from "./dialogs.js";
import { button, byId, el, icon, percent, plural, thumbnail, thumbnailUrl } from "./dom.js";
import { PhotoGrid } from "./grid.js";
import { actionOf, singleKeysAreOn } from "./keys.js";
import { openLightbox, openPicture } from "./lightbox.js";
import { isKnown, showCategories, showTabs, showText } from "./lists.js";
import { PhotoMap } from "./map.js";

const POLL_MS = 2500;
const PREFETCHED = 24;
const UNCERTAIN = 0.5;
const THRESHOLDS = [1, 0.9, 0.7, 0.5];

class ReviewPage {
  constructor() {
    this.overview = null;
    this.categories = new Map();
    this.view = null; // { route, ids, versions, category, near, categoryOf }
    this.grid = null;
    this.map = null;
    this.ticket = 0;
    this.isDeciding = false;
    this.isCutOff = false;
    this.below = 1;
  }

  async start() {
    byId("toggle-list").append(icon("menu"));
    byId("toggle-list").addEventListener("click", () => this.toggleList());
    byId("main").addEventListener("pointerdown", () => this.toggleList(false));
    document.addEventListener("keydown", (event) => this.pressKey(event));
    window.addEventListener("popstate", () => this.guard(() => this.open(routeOf(location.hash))));
    document.addEventListener("visibilitychange", () => this.poll());
    setInterval(() => this.poll(), POLL_MS);
    await this.guard(async () => {
      await this.loadOverview();
      await this.open(routeOf(location.hash) ?? this.routeOfTab("new"));
    });
  }

  // Runs something that may be refused, and says so.
  async guard(run) {
    try {
      await run();
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      alarm(error.message);
    }
  }

  // --- what is there

  async loadOverview() {
    this.overview = await get("overview");
    this.categories = new Map(this.overview.categories.map((category) => [category.id, category]));
    const stages = this.overview.status.stages;
    const summary = stages[stages.length - 1]?.summary;
    byId("summary").textContent = summary ?? plural(this.overview.status.n_photos, "photo");
    this.showTopbar();
  }

  // Looks whether somebody else has decided something; what this page shows must be what it decides about.
  async poll() {
    if (document.visibilityState !== "visible" || this.isDeciding || this.isPolling || !this.overview) return;
    this.isPolling = true;
    try {
      const { revision } = await get("revision");
      if (this.isCutOff) note("The server answers again.");
      this.isCutOff = false;
      if (revision === this.overview.revision || this.isDeciding) return;
      await this.loadOverview();
      const versions = this.view?.versions ?? {};
      const isStale = Object.entries(versions).some(([id, version]) => this.categories.get(Number(id))?.version !== version);
      if (isStale || this.view?.route.kind !== "category") await this.reload();
      else this.showList();
      if (isStale) say("Somebody else changed what is shown here; it was loaded again.");
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      if (!this.isCutOff) alarm(error.message);
      this.isCutOff = true;
    } finally {
      this.isPolling = false;
    }
  }

  titleOf(categoryId) {
    return this.categories.get(categoryId)?.title ?? `new ${categoryId}`;
  }

  get queue() {
    return this.overview.queue.map((id) => this.categories.get(id));
  }

  get known() {
    return this.overview.categories.filter(isKnown).sort((a, b) => a.title.localeCompare(b.title));
  }

  get tab() {
    const { route, category } = this.view;
    if (route.kind !== "category") return route.kind;
    return category && category.state !== "discovered" && category.state !== "rejected" ? "known" : "new";
  }

  routeOfTab(tab) {
    if (tab === "new") return this.overview.queue.length ? { kind: "category", id: this.overview.queue[0] } : { kind: "new" };
    if (tab === "known") return this.known.length ? { kind: "category", id: this.known[0].id } : { kind: "known" };
    return { kind: tab };
  }

  // --- opening a view

  navigate(route) {
    const hash = hashOf(route);
    if (location.hash !== hash) history.pushState(null, "", hash);
    return this.guard(() => this.open(route));
  }

  async open(route, { keep = false } = {}) {
    const started = performance.now();
    route ??= this.routeOfTab("new");
    const ticket = ++this.ticket;
    const answer = await this.ask(route);
    if (ticket !== this.ticket) return; // something else was opened meanwhile
    const isSame = keep && hashOf(route) === hashOf(this.view.route);
    this.view = { route, ids: answer.photo_ids, versions: answer.versions, category: answer.category ?? null,
      near: answer.near ?? [], nPhotos: answer.n_photos ?? answer.photo_ids.length, categoryOf: this.sourceOf(route, answer) };
    this.showList();
    if (route.kind === "map") this.showMap(answer, isSame);
    else this.showPhotos(answer, isSame);
    this.showHeading();
    this.toggleList(false);
    this.keepFocus();
    document.title = `${this.headline()} – ${this.overview.workspace}`;
    measure("igcd:open", started, this.grid);
    this.prefetchNext();
  }

  // Where what was in focus is gone, the photos are: the next key acts on them.
  keepFocus() {
    const focused = document.activeElement;
    if (!focused || focused === document.body || !focused.checkVisibility()) (this.map?.canvas ?? this.grid?.element)?.focus({ preventScroll: true });
  }

  reload() {
    return this.open(this.view.route, { keep: true });
  }

  ask(route) {
    if (route.kind === "category") return get(`categories/${route.id}`);
    if (route.kind === "unsure") return get("unsure");
    if (route.kind === "check") return get(`low-confidence?below=${this.below}`);
    if (route.kind === "map") return get("map");
    return { photo_ids: [], photos: [], versions: {} }; // a tab without anything in it
  }

  // Which category each photo of a view is in: decisions about photos touch those.
  sourceOf(route, answer) {
    if (route.kind === "category") return () => route.id;
    if (route.kind === "map") {
      const categoryOf = new Map(answer.photo_ids.map((id, at) => [id, answer.category_ids[at]]));
      return (photoId) => categoryOf.get(photoId);
    }
    const categoryOf = new Map(answer.photos.map((photo) => [photo.id, photo.category]));
    return (photoId) => categoryOf.get(photoId) ?? 0;
  }

  makeGrid() {
    return new PhotoGrid({
      label: "Photos",
      loadDetails: async (ids) => (await get(`photos?ids=${ids.join(",")}`)).photos,
      badgesOf: (photo) => this.badgesOf(photo),
      onSelection: (selection) => this.showSelection(selection),
      onOpen: (index) => openLightbox(this.grid, index, {
        titleOf: (photo) => (photo.category ? this.titleOf(photo.category) : "unsure"), canSelect: !this.overview.read_only }),
      size: this.grid?.size,
    });
  }

  badgesOf(photo) {
    const badges = [];
    const inCheck = this.view.route.kind === "check";
    if (inCheck || this.view.route.kind === "map") badges.push(photo.category ? this.titleOf(photo.category) : "unsure");
    if (photo.is_peak && !inCheck) badges.push("most typical");
    if (photo.near_duplicate_of !== null) badges.push("near-duplicate");
    const isHere = this.view.route.kind === "category" && this.view.category.state !== "discovered";
    if (photo.is_confirmed && isHere) badges.push("confirmed");
    else if (photo.category !== null && (inCheck || photo.probability < UNCERTAIN)) badges.push(percent(photo.probability));
    return badges;
  }

  // --- drawing

  showList() {
    if (!this.view) return;
    const tab = this.tab;
    showTabs(this.overview, tab, (chosen) => this.navigate(this.routeOfTab(chosen)));
    const open = (id) => this.navigate({ kind: "category", id });
    if (tab === "new") {
      if (this.queue.length) showCategories(this.queue, this.view.route.id, open);
      else showText("Nothing is waiting. Close the stage with igcd accept, or add photos and discover again.");
    } else if (tab === "known") {
      showCategories(this.known, this.view.route.id, open);
    } else if (tab === "check") {
      showText("Photos assigned to a known category, the least certain first. Confirm them, move them, or say you are not sure.");
    } else if (tab === "unsure") {
      showText("Photos that are of no category. Select those that belong together and split them off, or move them to a category.");
    } else {
      showText("Like photos are near each other. Draw around some to select them; Shift adds. What is confirmed stays out of it. Two fingers or the wheel zoom.");
    }
  }

  headline() {
    const { route, category } = this.view;
    if (route.kind === "category") return category.title;
    return { new: "Nothing to review", known: "No known categories", unsure: "Unsure photos", check: "Low confidence", map: "Map" }[route.kind];
  }

  facts() {
    const { route, category, nPhotos } = this.view;
    if (route.kind === "category") {
      const parts = [plural(category.n_photos, "photo")];
      if (category.state === "merged") return `was merged into ${this.titleOf(category.merged_into)}`;
      if (category.state === "rejected") return "was rejected; its photos are unsure";
      if (category.state === "discovered") {
        if (category.mean_probability !== null) parts.push(`${percent(category.mean_probability)} certain`);
        parts.push("typical ones first");
      } else {
        parts.push(`${category.n_confirmed.toLocaleString("en")} confirmed`, category.state === "accepted" ? "accepted in this stage" : "known");
      }
      return parts.join(" · ");
    }
    return route.kind === "new" || route.kind === "known" ? "" : plural(nPhotos, "photo");
  }

  showHeading() {
    const text = el("div", { class: "heading-text" }, el("h1", { text: this.headline() }), el("p", { text: this.facts() }));
    const actions = el("div", { class: "actions" });
    for (const [name, label, key, kind] of this.categoryActions()) {
      actions.append(button(label, () => this.run(name), { key, kind, "data-action": name }));
    }
    if (this.view.route.kind === "check") actions.append(this.thresholds());
    if (this.grid) {
      const drags = button("Drag to select", () => {
        const on = this.grid.element.classList.toggle("dragging-selects");
        drags.setAttribute("aria-pressed", on);
      }, { "aria-pressed": String(this.grid.element.classList.contains("dragging-selects")), kind: "quiet" });
      if (matchMedia("(pointer: coarse)").matches && !this.overview.read_only) actions.append(drags);
      actions.append(button("", () => this.run("smaller"), { picture: "smaller", label: "Smaller photos", key: "−", kind: "quiet" }),
        button("", () => this.run("larger"), { picture: "larger", label: "Larger photos", key: "+", kind: "quiet" }));
    }
    byId("heading").replaceChildren(text, actions);
  }

  thresholds() {
    const choices = THRESHOLDS.map((limit) => {
      const option = el("option", { value: limit, text: limit === 1 ? "all" : `below ${percent(limit)}` });
      option.selected = limit === this.below;
      return option;
    });
    const select = el("select", { "aria-label": "Certainty of the photos shown" }, ...choices);
    select.addEventListener("change", () => {
      this.below = Number(select.value);
      this.guard(() => this.open(this.view.route));
    });
    return select;
  }

  showPhotos(answer, keep) {
    this.map?.destroy();
    this.map = null;
    const isEmpty = !answer.photo_ids.length;
    const hasGrid = this.grid && byId("stage").querySelector(".photo-pane:not(.map-chosen)") && !isEmpty;
    if (!hasGrid) {
      this.grid?.destroy();
      this.grid = isEmpty ? null : this.makeGrid();
    }
    const stage = byId("stage");
    stage.classList.toggle("with-near", this.view.near.length > 0);
    if (isEmpty) {
      stage.replaceChildren(this.emptyState());
      return;
    }
    if (!hasGrid) {
      this.bar = el("div", { class: "selection", hidden: true, role: "toolbar", "aria-label": "Selected photos" });
      stage.replaceChildren(el("div", { class: "photo-pane", id: "photos" }, this.grid.element, this.bar));
    }
    stage.querySelector(".near")?.remove();
    if (this.view.near.length) stage.append(this.nearPanel());
    this.grid.show(answer.photo_ids, answer.photos, { keep, label: `Photos of ${this.headline()}` });
  }

  emptyState() {
    const { route, category } = this.view;
    if (route.kind === "category") {
      const into = category.merged_into;
      return el("div", { class: "empty" }, el("h2", { text: "No photos here" }), el("p", { text: this.facts() }),
        into ? button(`Open ${this.titleOf(into)}`, () => this.navigate({ kind: "category", id: into })) : null,
        button("Go on with the queue", () => this.navigate(this.routeOfTab("new")), { kind: "primary" }));
    }
    const nWaiting = this.overview.status.stages.reduce((sum, stage) => sum + stage.n_waiting, 0);
    if (route.kind === "new" && nWaiting) {
      return el("div", { class: "empty" }, el("h2", { text: `${plural(nWaiting, "photo")} not looked at yet` }),
        el("p", { text: "Run igcd discover; what it finds shows up here by itself." }));
    }
    const texts = {
      new: ["All new categories are decided", "Go through the photos of known categories with low confidence, or close the stage with igcd accept."],
      known: ["No category is known yet", "Name or accept a new one."],
      check: ["Nothing to check", "No photo of a known category is waiting to be confirmed."],
      unsure: ["No unsure photos", "Every photo is of some category."],
    };
    const [title, text] = texts[route.kind];
    return el("div", { class: "empty" }, el("h2", { text: title }), el("p", { text }));
  }

  nearPanel() {
    const known = this.view.near.map(({ category, similarity, photos }, at) => {
      const isNew = this.view.category.state === "discovered";
      const merge = button(isNew ? "It is this" : "Merge", () => this.run(`near-${at + 1}`), { key: String(at + 1),
        "aria-label": `It is ${category.title}: merge, or move the selected photos` });
      return el("section", { class: "near-known" },
        el("div", { class: "near-head" }, el("h3", {}, el("span", { text: category.title }),
          el("span", { class: "small muted", text: ` ${percent(similarity)}` })), this.overview.read_only ? null : merge),
        el("div", { class: "near-photos" }, ...photos.map((photo) =>
          el("button", { type: "button", "aria-label": `Show a photo of ${category.title}`,
            on: { click: () => openPicture(photo, category.title) } }, thumbnail(photo.id)))));
    });
    return el("aside", { class: "near", "aria-label": "Known categories it looks like" }, el("h2", { text: "Looks most like" }), ...known);
  }

  showMap(answer, keep) {
    if (!keep || !this.map) {
      this.grid?.destroy();
      this.map?.destroy();
      this.grid = this.makeGrid();
      this.bar = el("div", { class: "selection", hidden: true, role: "toolbar", "aria-label": "Selected photos" });
      this.map = new PhotoMap({
        kindOf: (id) => (!id ? "unsure" : this.categories.get(id)?.state === "discovered" ? "novel" : "known"),
        titleOf: (id) => this.titleOf(id),
        onSelect: (ids) => this.showChosen(ids),
      });
      this.noneChosen = el("p", { class: "empty", text: "Draw around photos on the map, and they are shown here." });
      const chosen = el("div", { class: "photo-pane map-chosen", id: "photos" }, this.grid.element, this.noneChosen, this.bar);
      byId("stage").classList.remove("with-near");
      byId("stage").replaceChildren(el("div", { class: "map" }, this.map.element, chosen));
    }
    this.map.show(answer);
    this.showChosen(this.grid.ids, this.grid.selectedInOrder());
  }

  // The photos in the lasso, all of them selected; some can be left out again.
  showChosen(ids, selected = ids) {
    this.grid.show(ids, [], { label: "Photos chosen on the map" });
    this.grid.select(selected);
    this.noneChosen.hidden = ids.length > 0;
    say(`${plural(ids.length, "photo")} chosen`);
  }

  showSelection(selection) {
    if (!this.bar) return;
    this.map?.mark(selection);
    const actions = this.photoActions();
    const isStepping = this.view.route.kind === "check" && selection.size === 0; // through doubts, photo by photo
    this.bar.hidden = (selection.size === 0 && !isStepping) || this.overview.read_only;
    if (this.bar.hidden) return;
    if (!this.bar.hasChildNodes() || this.bar.dataset.actions !== actions.join()) {
      this.bar.dataset.actions = actions.join();
      this.bar.replaceChildren(el("span", { class: "selection-count", "aria-live": "polite" }),
        ...actions.map(([name, label, key, kind]) => button(label, () => this.run(name), { key, kind, "data-action": name })),
        button("", () => this.grid.select([]), { picture: "close", label: "Select none", key: "Esc", kind: "quiet" }));
    }
    this.bar.firstChild.textContent = isStepping ? "Photo in focus" : `${selection.size.toLocaleString("en")} selected`;
    this.bar.lastChild.hidden = isStepping;
  }

  showTopbar() {
    const { undo, redo, read_only: readOnly } = this.overview;
    const buttons = [
      button("", () => this.run("history"), { picture: "history", label: "What was decided", key: "H", kind: "quiet" }),
      button("", () => this.run("help"), { picture: "help", label: "Keys and help", key: "?", kind: "quiet" }),
    ];
    if (!readOnly) {
      buttons.unshift(
        button("", () => this.run("undo"), { picture: "undo", label: undo ? `Undo: ${undo.sentence}` : "Nothing to undo", key: "Z", kind: "quiet", disabled: !undo, id: "undo" }),
        button("", () => this.run("redo"), { picture: "redo", label: redo ? `Redo: ${redo.sentence.replace(/^undid: /, "")}` : "Nothing to redo", key: "Y", kind: "quiet", disabled: !redo, id: "redo" }),
      );
    }
    byId("topbar-actions").replaceChildren(...buttons);
  }

  toggleList(open = !byId("sidebar").classList.contains("open")) {
    byId("sidebar").classList.toggle("open", open);
    byId("toggle-list").setAttribute("aria-expanded", open);
  }

  prefetchNext() {
    if (this.view.route.kind !== "category") return;
    const next = this.neighbor(1);
    if (next === null || this.prefetched === next) return;
    this.prefetched = next;
    const later = window.requestIdleCallback ?? ((run) => setTimeout(run, 300));
    later(async () => {
      try {
        const { photo_ids: ids } = await get(`categories/${next}`);
        for (const id of ids.slice(0, PREFETCHED)) new Image().src = thumbnailUrl(id);
      } catch {
        // only a head start
      }
    });
  }

  // --- what can be done

  categoryActions() {
    const { route, category } = this.view;
    if (this.overview.read_only || route.kind !== "category" || !this.categories.has(route.id)) return [];
    const isNew = category.state === "discovered";
    const actions = [["name", isNew ? "Name" : "Rename", "N", isNew ? "primary" : ""]];
    if (isNew) actions.push(["accept", "Accept", "A", ""]);
    actions.push(["merge", "Merge into…", "M", ""]);
    if (isNew) actions.push(["unsure", "Not sure", "U", ""]);
    if (category.state !== "labeled") actions.push(["reject", "Reject", "R", "danger"]);
    return actions;
  }

  photoActions() {
    const { route, category } = this.view;
    const split = ["split", "Split off", "S", ""];
    const move = ["move", "Move to…", "V", ""];
    const confirm = ["confirm", "Confirm", "C", "primary"];
    const unsure = ["unsure", "Not sure", "U", ""];
    if (route.kind === "unsure") return [split, move];
    if (route.kind === "check") return [confirm, move, split, unsure];
    if (route.kind === "category" && category.state !== "discovered") return [confirm, split, move, unsure];
    return [split, move, unsure];
  }

  // The photos an action is about; in the list of doubts also the one in focus, so that single keys go through it.
  chosenPhotos() {
    if (!this.grid) return [];
    const selected = this.grid.selectedInOrder();
    if (selected.length || this.view.route.kind !== "check" || this.grid.activeId === undefined) return selected;
    return [this.grid.activeId];
  }

  pressKey(event) {
    if (document.querySelector("dialog[open]") || !this.view) return;
    const action = actionOf(event, { singleKeys: singleKeysAreOn() });
    if (!action) return;
    event.preventDefault();
    this.run(action);
  }

  run(action) {
    if (action.startsWith("tab-")) return this.navigate(this.routeOfTab(action.slice(4)));
    if (action === "help") return openHelp();
    if (action === "history") {
      return this.guard(() => openHistory({ canUndo: !this.overview.read_only, onUndo: (id) => this.undo(id) }));
    }
    if (action === "next" || action === "previous") {
      const id = this.neighbor(action === "next" ? 1 : -1);
      return id === null ? undefined : this.navigate({ kind: "category", id });
    }
    if (action === "larger" || action === "smaller") return this.grid?.resize(action === "larger" ? 1 : -1);
    if (this.overview.read_only) return undefined;
    if (action === "undo") return this.overview.undo ? this.undo(this.overview.undo.id) : say("Nothing to undo");
    if (action === "redo") return this.overview.redo ? this.undo(this.overview.redo.id) : say("Nothing to redo");
    if (action.startsWith("near-")) return this.toNear(Number(action.slice(5)) - 1);
    const photos = this.chosenPhotos();
    const mayDo = (actions) => actions.some(([name]) => name === action.replace("-named", ""));
    if (photos.length && mayDo(this.photoActions())) return this.runOnPhotos(action, photos);
    if (mayDo(this.categoryActions())) return this.runOnCategory(action, this.view.category);
    if (mayDo(this.photoActions())) say("Select photos first");
    return undefined;
  }

  runOnCategory(action, category) {
    const { id } = category;
    const versions = this.versionsOf([id]);
    const decideAndGoOn = (path, body) => this.decide(path, body, { goOn: category.state === "discovered" });
    if (action === "accept") return decideAndGoOn(`categories/${id}/accept`, { seen: versions });
    if (action === "reject") return decideAndGoOn(`categories/${id}/reject`, { seen: versions });
    if (action === "unsure") return decideAndGoOn(`categories/${id}/defer`, { seen: versions });
    const mergeInto = (other) =>
      decideAndGoOn(`categories/${id}/merge`, { into: other.id, seen: { ...versions, ...this.versionsOf([other.id]) } });
    if (action === "name") {
      return askName({
        title: category.state === "discovered" ? `Name ${category.title}` : `Rename ${category.title}`,
        now: category.name ?? "",
        categories: this.overview.categories,
        onName: (text) => decideAndGoOn(`categories/${id}/name`, { text, seen: versions }),
        onTaken: mergeInto,
      });
    }
    return askCategory({ title: `Merge ${category.title} into`, verb: "Merge", likely: this.likely(),
      categories: this.overview.categories.filter((other) => other.id !== id), onChoose: mergeInto });
  }

  async runOnPhotos(action, photos) {
    const sources = [...new Set(photos.map((id) => this.view.categoryOf(id)).filter(Boolean))];
    const body = { photo_ids: photos, seen: this.versionsOf(sources) };
    if (action === "unsure") return this.decide("photos/unsure", body);
    if (action === "split") return this.decide("photos/split", body);
    if (action === "confirm") return this.confirm(photos);
    const splitNamed = (name) => this.decide("photos/split", { ...body, name });
    const moveTo = (other) =>
      this.decide("photos/move", { ...body, to: other.id, seen: { ...body.seen, ...this.versionsOf([other.id]) } });
    if (action === "split-named") {
      return askName({ title: `Split ${plural(photos.length, "photo")} off as`, verb: "Split off",
        categories: this.overview.categories, onName: splitNamed, onTaken: moveTo });
    }
    return askCategory({ title: `Move ${plural(photos.length, "photo")} to`, verb: "Move", likely: this.likely(),
      categories: this.overview.categories.filter(({ id }) => sources.length !== 1 || id !== sources[0]),
      onChoose: moveTo, onNew: (name) => (name ? splitNamed(name) : this.decide("photos/split", body)) });
  }

  // Confirms the category of photos: one decision for each category.
  async confirm(photos) {
    const groups = new Map();
    for (const id of photos) {
      const category = this.view.categoryOf(id);
      if (category) groups.set(category, [...(groups.get(category) ?? []), id]);
    }
    for (const [to, ids] of groups) {
      if (!(await this.decide("photos/move", { photo_ids: ids, to, seen: this.versionsOf([to]) }))) return;
    }
  }

  toNear(at) {
    const near = this.view.near[at];
    if (!near) return undefined;
    const { category } = this.view;
    const photos = this.chosenPhotos();
    const seen = this.versionsOf([category.id, near.category.id]);
    if (photos.length) return this.decide("photos/move", { photo_ids: photos, to: near.category.id, seen });
    return this.decide(`categories/${category.id}/merge`, { into: near.category.id, seen }, { goOn: true });
  }

  likely() {
    return this.view.near.map(({ category }) => this.categories.get(category.id) ?? category);
  }

  // The versions as they were shown: those that came with the photos, else those of the lists.
  versionsOf(ids) {
    return Object.fromEntries(ids.map((id) => [id, this.view.versions[id] ?? this.categories.get(id)?.version ?? 0]));
  }

  // The category before or after the open one in the list it is in.
  neighbor(step) {
    const ids = this.tab === "known" ? this.known.map(({ id }) => id) : this.overview.queue;
    const at = ids.indexOf(this.view.route.id);
    if (at < 0) return ids[0] ?? null;
    return ids[at + step] ?? null;
  }

  // --- deciding

  // Sends a decision and shows what is so then; true when it was done. goOn: opens what is next in the queue.
  async decide(path, body, { goOn = false } = {}) {
    if (this.isDeciding) return false;
    this.isDeciding = true;
    const after = this.overview.queue.slice(this.overview.queue.indexOf(this.view.route.id) + 1);
    try {
      const { decision } = await post(path, body);
      await this.loadOverview();
      if (goOn) {
        const waiting = new Set(this.overview.queue);
        const next = after.find((id) => waiting.has(id));
        const route = next === undefined ? this.routeOfTab("new") : { kind: "category", id: next };
        history.pushState(null, "", hashOf(route));
        await this.open(route);
      } else {
        this.grid?.select([]);
        if (this.map) this.grid.show([], []);
        await this.reload();
      }
      this.noteDecision(decision);
      return true;
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      alarm(error.message);
      if (error.isConflict) {
        await this.guard(async () => {
          await this.loadOverview();
          await this.reload();
        });
      }
      return false;
    } finally {
      this.isDeciding = false;
    }
  }

  noteDecision(decision) {
    const buttons = [button("Undo", () => this.undo(decision.id), { kind: "quiet" })];
    const made = decision.payload.new;
    if (decision.kind === "split") {
      buttons.unshift(button("Open", () => this.navigate({ kind: "category", id: made }), { kind: "quiet", label: "Open the new category" }));
    }
    note(capitalized(decision.sentence), buttons);
  }

  // Takes a decision back, or an undo, and opens the category it was about.
  async undo(decisionId) {
    if (this.isDeciding) return;
    this.isDeciding = true;
    try {
      const { decision } = await post("undo", { decision: decisionId });
      await this.loadOverview();
      const about = subjectOf(decision.payload);
      const route = about && this.categories.has(about) ? { kind: "category", id: about } : this.view.route;
      const isHere = hashOf(route) === hashOf(this.view.route);
      if (isHere || this.view.route.kind === "check" || this.view.route.kind === "map") {
        await this.reload();
      } else {
        history.pushState(null, "", hashOf(route));
        await this.open(route);
      }
      clearNotes();
      note(capitalized(decision.sentence));
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      alarm(error.message);
      await this.guard(() => this.loadOverview());
    } finally {
      this.isDeciding = false;
    }
  }
}

// The category a decision was about, also when it took another one back.
function subjectOf(payload) {
  if (payload.undone) return subjectOf(payload.undone);
  return payload.category ?? payload.from?.[0] ?? null;
}

const capitalized = (sentence) => sentence[0].toUpperCase() + sentence.slice(1);

function routeOf(hash) {
  const [, kind, id] = hash.split("/");
  if (kind === "category" && /^\d+$/.test(id)) return { kind, id: Number(id) };
  return ["unsure", "check", "map"].includes(kind) ? { kind } : null;
}

function hashOf({ kind, id }) {
  return id ? `#/${kind}/${id}` : `#/${kind}`;
}

// Two figures for each view that is opened: until it is painted, and until all pictures in sight are there.
function measure(name, started, grid) {
  requestAnimationFrame(() =>
    setTimeout(async () => {
      performance.measure(name, { start: started, end: performance.now() });
      const images = grid ? [...grid.tiles.values()].map((tile) => tile.firstChild) : [];
      await Promise.allSettled(images.map((image) => image.decode()));
      performance.measure(`${name}-pictures`, { start: started, end: performance.now() });
    }),
  );
}

new ReviewPage().start();
