// What the page shows: the list on the left, the heading with its actions, photos or the map, what they look like.

import { say } from "./announce.js";
import { get } from "./api.js";
import { breakable, button, byId, el, grouped, percent, plural, thumbnail, thumbnailUrl } from "./dom.js";
import { PhotoGrid } from "./grid.js";
import { openLightbox, openPicture } from "./lightbox.js";
import { showCategories, showTabs, showText } from "./lists.js";
import { PhotoMap } from "./map.js";
import { Page } from "./page.js";
import { granularitySlider, showGalleries, showLooks, showSearch, showTree } from "./sidebar.js";
import { EMPTY, headlineOf } from "./views.js";
import { nextStep, showJob, tellJob } from "./work.js";

const PREFETCHED = 24;
const UNCERTAIN = 0.5;
const WITH_CATEGORY = ["map", "look", "similar", "find", "gallery"];

export class DrawnPage extends Page {
  makeGrid() {
    return new PhotoGrid({
      label: "Photos",
      loadDetails: async (ids) => (await get(`photos?ids=${ids.join(",")}`)).photos,
      badgesOf: (photo) => this.badgesOf(photo),
      onSelection: (selection) => this.showSelection(selection),
      onActive: (photoId) => this.showSuggestion(photoId),
      onOpen: (index) => openLightbox(this.grid, index, {
        titleOf: (photo) => (photo.category ? this.titleOf(photo.category) : "unsure"), canSelect: !this.overview.read_only }),
      size: this.grid?.size,
    });
  }

  badgesOf(photo) {
    const badges = [];
    const { route, category, similarity, parts, suggestions } = this.view;
    const isMixed = WITH_CATEGORY.includes(route.kind);
    const suggestion = suggestions[photo.id];
    if (suggestion?.opinions.length) badges.push(...suggestion.opinions);
    else if (suggestion) badges.push(this.titleOf(photo.category), `${this.titleOf(suggestion.category)}?`);
    else if (isMixed) badges.push(photo.category ? this.titleOf(photo.category) : "unsure");
    if (route.kind === "parts") badges.push(`part ${parts.findIndex((part) => part.includes(photo.id)) + 1}`);
    if (route.kind === "similar") badges.push(...(photo.id in similarity ? [] : ["chosen"]));
    if (photo.is_peak && !isMixed) badges.push("most typical");
    if (photo.near_duplicate_of !== null) badges.push("near-duplicate");
    const isSettled = photo.is_confirmed && (route.kind !== "category" || category.state !== "discovered");
    if (suggestion) return badges; // how probable it is stands beside the photos
    if (isSettled) badges.push("confirmed");
    else if (photo.category !== null && route.kind !== "similar" && (isMixed || photo.probability < UNCERTAIN)) badges.push(percent(photo.probability));
    return badges;
  }

  // --- drawing

  showList() {
    if (!this.view) return;
    const { tab } = this;
    const { route } = this.view;
    showTabs(this.overview, tab, (chosen) => this.navigate(this.routeOfTab(chosen)));
    const open = (id) => this.navigate({ kind: "category", id });
    if (tab === "new") {
      const { outlook, read_only: readOnly, discovered } = this.overview;
      const canMove = !readOnly && outlook.state === "discovered";
      const slider = canMove ? granularitySlider(discovered.granularity, (granularity) => this.discover({ granularity })) : null;
      if (this.queue.length) showCategories(this.queue, route.id, open, slider);
      else showText("No new category is waiting.", slider);
    } else if (tab === "known") {
      this.showKnown(open);
    } else if (tab === "look") {
      showLooks(this.view, route.id, { titleOf: (id) => this.titleOf(id), onOpen: (id) => this.navigate({ kind: "look", id }) });
    } else if (tab === "checks") {
      this.guard(() => showGalleries(route.id, (id) => this.navigate({ kind: "gallery", id })));
    } else if (tab === "find") {
      if (!byId("find-text")) {
        showSearch({ stages: this.overview.status.stages, categories: this.overview.categories,
          onChange: () => this.guard(() => this.open({ kind: "find" })), onCategory: open });
      }
    } else {
      showText("Like photos are near each other. Draw around some to select them; Shift adds. What is confirmed stays out of it. Two fingers or the wheel zoom.");
    }
  }

  showKnown(open) {
    const choose = (asTree) => button(asTree ? "Tree" : "Names", () => {
      this.asTree = asTree;
      this.showList();
    }, { kind: "quiet", "aria-pressed": String(Boolean(this.asTree) === asTree) });
    const above = el("div", { class: "list-order", role: "group", "aria-label": "Order of the categories" }, choose(false), choose(true));
    showCategories(this.asTree ? [] : this.known, this.view.route.id, open, above);
    if (this.asTree) this.guard(() => showTree(this.categories, this.view.route.id, open));
  }

  headline() {
    return headlineOf(this.view);
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
        parts.push(`${grouped(category.n_confirmed)} confirmed`, category.state === "accepted" ? "accepted in this stage" : "known");
      }
      return parts.join(" · ");
    }
    if (route.kind === "look" && this.view.looks.length) {
      const at = this.view.looks.indexOf(route.id);
      return `${plural(nPhotos, "photo")} that look alike · group ${at + 1} of ${grouped(this.view.looks.length)}`;
    }
    if (route.kind === "similar") {
      const nElsewhere = this.view.elsewhere.length;
      const left = nElsewhere ? ` · ${grouped(nElsewhere)} more like another category, not selected` : "";
      return `the ${plural(route.n, "photo")} most like the chosen, among all that is not confirmed${left}`;
    }
    if (route.kind === "gallery" && route.id === "mistakes" && nPhotos) {
      const nExpected = Math.round(Object.values(this.view.suggestions).reduce((sum, one) => sum + 1 - one.probability, 0));
      return `${plural(nPhotos, "label")} · about ${grouped(nExpected)} expected to be wrong`;
    }
    if (route.kind === "parts") return this.view.parts.map((part, at) => `part ${at + 1}: ${plural(part.length, "photo")}`).join(" · ");
    return route.kind === "new" || route.kind === "known" ? "" : plural(nPhotos, "photo");
  }

  showHeading() {
    const text = el("div", { class: "heading-text" }, el("h1", {}, ...breakable(this.headline())), el("p", { text: this.facts() }));
    const actions = el("div", { class: "actions" });
    for (const [name, label, key, kind] of this.categoryActions()) {
      actions.append(button(label, () => this.run(name), { key, kind, "data-action": name }));
    }
    actions.append(...this.viewControls());
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

  // Sliders of a view: how many photos are like this, in how many parts.
  viewControls() {
    const { route } = this.view;
    const slider = (label, low, high, step, open) => {
      const input = el("input", { type: "range", min: low, max: high, step, value: route.n, "aria-label": label });
      const value = el("output", { text: route.n });
      input.addEventListener("input", () => { value.textContent = input.value; });
      input.addEventListener("change", () => this.guard(() => this.open(open(Number(input.value)))));
      return el("label", { class: "inline-slider" }, label, input, value);
    };
    if (route.kind === "similar") return [slider("How many", 6, 120, 6, (n) => ({ ...route, n }))];
    if (route.kind === "parts") {
      const choose = this.view.parts.map((part, at) => button(`Part ${at + 1}`, () => this.grid.select(part), { key: String(at + 1) }));
      return [slider("Parts", 2, 8, 1, (n) => ({ ...route, n })), ...(this.overview.read_only ? [] : choose)];
    }
    return [];
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
    const hasNear = this.view.near.length > 0 || Object.keys(this.view.suggestions).length > 0;
    stage.classList.toggle("with-near", hasNear && !isEmpty);
    if (isEmpty) {
      stage.replaceChildren(this.emptyState());
      return;
    }
    if (!hasGrid) {
      this.bar = el("div", { class: "selection", hidden: true, role: "toolbar", "aria-label": "Selected photos" });
      stage.replaceChildren(el("div", { class: "photo-pane", id: "photos" }, this.grid.element, this.bar));
    }
    this.showNear(this.view.near);
    this.grid.show(answer.photo_ids, answer.photos, { keep, label: `Photos of ${this.headline()}` });
    if (this.view.route.kind === "similar" && !this.overview.read_only) {
      const elsewhere = new Set(this.view.elsewhere);
      this.grid.select(answer.photo_ids.filter((id) => !elsewhere.has(id)));
    }
    if (Object.keys(this.view.suggestions).length) this.showSuggestion(this.grid.activeId);
  }

  showNear(near) {
    byId("stage").querySelector(".near")?.remove();
    if (near.length) byId("stage").append(this.nearPanel(near));
  }

  // Beside a photo that is suspected to be a mistake: what it may be instead.
  async showSuggestion(photoId) {
    const suggestion = this.view?.suggestions[photoId];
    if (!suggestion || this.suggested === photoId) return;
    this.suggested = photoId;
    const other = this.categories.get(suggestion.category);
    if (!other) return;
    await this.guard(async () => {
      const { photos } = await get(`categories/${other.id}`);
      if (this.suggested !== photoId || this.view.route.kind !== "gallery") return;
      this.view.near = [{ category: other, similarity: suggestion.other_probability, photos: photos.slice(0, 8) }];
      this.showNear(this.view.near);
    });
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
        el("p", { text: this.overview.read_only ? "Nobody has discovered them yet." : "What a discovery finds shows up here by itself." }),
        this.overview.read_only ? null : button("Discover", () => this.discover({}), { kind: "primary" }));
    }
    const [title, text] = EMPTY[route.id] ?? EMPTY[route.kind] ?? EMPTY.gallery;
    return el("div", { class: "empty" }, el("h2", { text: title }), el("p", { text }));
  }

  nearPanel(near) {
    const { route } = this.view;
    const known = near.map(({ category, similarity, photos }, at) => {
      const isMerge = route.kind === "category" && this.view.category.state !== "discovered";
      const merge = button(isMerge ? "Merge" : "It is this", () => this.run(`near-${at + 1}`), { key: String(at + 1),
        "aria-label": `It is ${category.title}: merge, or move the selected photos` });
      return el("section", { class: "near-known" },
        el("div", { class: "near-head" }, el("h3", {}, el("span", {}, ...breakable(category.title)),
          similarity === null || route.kind === "category" ? null : el("span", { class: "small muted", text: ` ${percent(similarity)}` })), this.overview.read_only ? null : merge),
        el("div", { class: "near-photos" }, ...photos.map((photo) =>
          el("button", { type: "button", "aria-label": `Show a photo of ${category.title}`,
            on: { click: () => openPicture(photo, category.title) } }, thumbnail(photo.id)))));
    });
    const title = { look: "May be", gallery: route.id === "disagreements" ? "The other opinion" : "More likely" }[route.kind] ?? "Looks most like";
    return el("aside", { class: "near", "aria-label": "Categories it looks like" }, el("h2", { text: title }), ...known);
  }

  showMap(answer, keep) {
    if (!keep || !this.map) {
      this.grid?.destroy();
      this.map?.destroy();
      this.grid = this.makeGrid();
      this.bar = el("div", { class: "selection", hidden: true, role: "toolbar", "aria-label": "Selected photos" });
      this.map = new PhotoMap({
        titleOf: (id) => this.titleOf(id),
        onSelect: (ids) => this.showChosen(ids),
      });
      this.noneChosen = el("p", { class: "empty", text: "Draw around photos on the map, and they are shown here." });
      const chosen = el("div", { class: "photo-pane map-chosen", id: "photos" }, this.grid.element, this.noneChosen, this.bar);
      byId("stage").classList.remove("with-near");
      byId("stage").replaceChildren(el("div", { class: "map" }, this.map.element, chosen));
    }
    this.map.show(answer.places);
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
    const isStepping = selection.size === 0 && ["look", "gallery"].includes(this.view.route.kind); // group by group, photo by photo
    this.bar.hidden = (selection.size === 0 && !isStepping) || this.overview.read_only;
    if (this.view.route.kind === "look") this.showAlternatives(selection);
    if (this.bar.hidden) return;
    if (!this.bar.hasChildNodes() || this.bar.dataset.actions !== actions.join()) {
      this.bar.dataset.actions = actions.join();
      this.bar.replaceChildren(el("span", { class: "selection-count", "aria-live": "polite" }),
        ...actions.map(([name, label, key, kind]) => button(label, () => this.run(name), { key, kind, "data-action": name })),
        button("", () => this.grid.select([]), { picture: "close", label: "Select none", key: "Esc", kind: "quiet" }));
    }
    const inFocus = this.view.route.kind === "look" ? `All ${grouped(this.grid.ids.length)}` : "Photo in focus";
    this.bar.firstChild.textContent = isStepping ? inFocus : `${grouped(selection.size)} selected`;
    this.bar.lastChild.hidden = isStepping;
  }

  // One photo of a group selected: its own alternatives stand beside it.
  async showAlternatives(selection) {
    const only = selection.size === 1 ? [...selection][0] : null;
    if (only === (this.alternativesOf ?? null)) return;
    this.alternativesOf = only;
    const { view } = this;
    view.groupNear ??= view.near;
    if (only === null) {
      view.near = view.groupNear;
    } else {
      await this.guard(async () => {
        const { near, versions } = await get(`photos/${only}/alternatives`);
        if (this.alternativesOf === only && near.length) [view.near, view.versions] = [near, { ...view.versions, ...versions }];
      });
    }
    if (this.view === view) this.showNear(view.near);
  }

  // --- work in progress

  showJob(job) {
    showJob(job);
  }

  // Shows how far something is; when it is done, says what came out and shows what is there then. True: it was just done.
  async followJob(job) {
    const wasRunning = this.overview.job?.state === "running";
    this.overview.job = job;
    showJob(job);
    if (job?.state === "running" && !wasRunning) this.showTopbar();
    if (!job || job.state === "running" || job.id <= this.toldJob) return false;
    this.toldJob = job.id;
    await this.loadOverview();
    await this.guard(() => this.open(job.kind === "discover" && job.state === "done" ? this.routeOfTab("new") : this.view.route));
    tellJob(job);
    return true;
  }

  showTopbar() {
    const { undo, redo, read_only: readOnly } = this.overview;
    const buttons = [
      button("", () => this.run("history"), { picture: "history", label: "What was decided", key: "H", kind: "quiet" }),
      button("", () => this.run("help"), { picture: "help", label: "Keys and help", key: "?", kind: "quiet", id: "help" }),
    ];
    if (!readOnly) {
      const next = nextStep(this.overview);
      if (next) buttons.unshift(button(next[1], () => this.step(next[0]), { kind: `next-step ${next[2]}`, id: "next-step" }));
      buttons.splice(next ? 1 : 0, 0, button("", () => this.run("steps"), { picture: "stage", label: "The stage: add photos, discover, accept, export", key: "W", kind: "quiet", id: "steps" }));
      buttons.splice(next ? 2 : 1, 0,
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
}
