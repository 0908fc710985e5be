// What can be done, by button and by key, and what happens then.

import { alarm, clearNotes, note, say } from "./announce.js";
import { post, Refusal } from "./api.js";
import { askCategory, askName, openHelp, openHistory } from "./dialogs.js";
import { button, byId, plural } from "./dom.js";
import { DrawnPage } from "./drawing.js";
import { actionOf, singleKeysAreOn } from "./keys.js";
import { hashOf, subjectOf } from "./routes.js";
import { askFolder, begin, openSteps } from "./work.js";

const capitalized = (sentence) => sentence[0].toUpperCase() + sentence.slice(1);

export class ReviewPage extends DrawnPage {
  // --- what can be done

  categoryActions() {
    const { route, category } = this.view;
    if (this.overview.read_only || route.kind !== "category" || !this.categories.has(route.id)) return [];
    const isNew = category.state === "discovered";
    const actions = [["name", isNew ? "Name" : "Rename", "N", isNew ? "primary" : ""]];
    if (isNew) actions.push(["accept", "Accept", "A", ""]);
    actions.push(["merge", "Merge into…", "M", ""]);
    if (isNew) actions.push(["unsure", "Not sure", "U", ""]);
    if (category.n_photos > 3) actions.push(["parts", "Split…", "P", ""]);
    if (category.state !== "labeled") actions.push(["reject", "Reject", "R", "danger"]);
    return actions;
  }

  photoActions() {
    const { route, category } = this.view;
    const split = ["split", "Split off", "S", ""];
    const name = ["split-named", "Name", "N", "primary"];
    const move = ["move", "Move to…", "V", ""];
    const confirm = ["confirm", "Confirm", "C", "primary"];
    const keep = ["confirm", "Keep", "C", "primary"];
    const unsure = ["unsure", "Not sure", "U", ""];
    const similar = ["similar", "More like this", "F", ""];
    if (route.kind === "look") return [name, ["confirm", "Confirm", "C", ""], move, similar, unsure];
    if (route.kind === "similar") return [name, move, similar, unsure];
    if (route.kind === "gallery") return [keep, move, unsure];
    if (route.kind === "find") return [confirm, move, split, similar, unsure];
    if (route.kind === "parts") return [split, ["split-named", "Name", "N", "primary"], move];
    if (route.kind === "category" && category.state !== "discovered") return [confirm, split, move, similar, unsure];
    return [split, move, similar, unsure];
  }

  // The photos an action is about. Without a selection: in a group that needs a look all of it, in a gallery the one in focus.
  chosenPhotos() {
    if (!this.grid) return [];
    const selected = this.grid.selectedInOrder();
    if (selected.length) return selected;
    if (this.view.route.kind === "look") return this.grid.ids;
    return this.view.route.kind === "gallery" && this.grid.activeId !== undefined ? [this.grid.activeId] : [];
  }

  pressKey(event) {
    if (document.querySelector("dialog[open]") || !this.view) return;
    const action = actionOf(event, { singleKeys: singleKeysAreOn() });
    if (!action) return;
    event.preventDefault();
    this.run(action);
  }

  run(action) {
    if (action === "tab-find") return this.navigate({ kind: "find" }).then(() => byId("find-text")?.focus());
    if (action.startsWith("tab-")) return this.navigate(this.routeOfTab(action.slice(4)));
    if (action === "help") return openHelp();
    if (action === "history") {
      return this.guard(() => openHistory({ canUndo: !this.overview.read_only, onUndo: (id) => this.undo(id) }));
    }
    if (action === "next" || action === "previous") {
      const id = this.neighbor(action === "next" ? 1 : -1);
      return id === null ? undefined : this.navigate({ kind: this.view.route.kind === "look" ? "look" : "category", id });
    }
    if (action === "larger" || action === "smaller") return this.grid?.resize(action === "larger" ? 1 : -1);
    if (action === "similar") return this.findSimilar();
    if (action === "parts") return this.view.route.kind === "category" ? this.navigate({ kind: "parts", id: this.view.route.id, n: 2, from: this.tab }) : undefined;
    if (this.overview.read_only) return undefined;
    if (action === "undo") return this.overview.undo ? this.undo(this.overview.undo.id) : say("Nothing to undo");
    if (action === "redo") return this.overview.redo ? this.undo(this.overview.redo.id) : say("Nothing to redo");
    if (action === "steps") return openSteps(this);
    if (action.startsWith("near-")) return this.toNear(Number(action.slice(5)) - 1);
    const photos = this.chosenPhotos();
    const mayDo = (actions) => actions.some(([name]) => name.replace("-named", "") === action.replace("-named", ""));
    // N names the photos where they are what the view is about, and the category elsewhere.
    if (action === "name" && this.photoActions().some(([name]) => name === "split-named")) {
      return photos.length ? this.runOnPhotos("split-named", photos) : say("Select photos first");
    }
    if (photos.length && mayDo(this.photoActions())) return this.runOnPhotos(action, photos);
    if (mayDo(this.categoryActions())) return this.runOnCategory(action, this.view.category);
    if (mayDo(this.photoActions())) say("Select photos first");
    return undefined;
  }

  // --- work

  discover(body) {
    return this.guard(async () => {
      if (await begin("discover", body)) await this.poll();
    });
  }

  step(name) {
    return name === "add" ? (this.overview.uses_paths ? askFolder(this) : openSteps(this)) : this.discover({});
  }

  // The photos most like the selected ones, or the one in focus.
  findSimilar() {
    const selected = this.grid?.selectedInOrder() ?? [];
    const ids = selected.length ? selected : this.grid?.activeId === undefined ? [] : [this.grid.activeId];
    if (!ids.length) return say("Select photos first");
    const { route } = this.view;
    const sources = route.kind === "similar" && !selected.length ? route.ids : ids;
    return this.guard(() => this.open({ kind: "similar", ids: sources, n: 12, from: this.tab, back: route.kind === "similar" ? route.back : route }));
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

  // Says that photos are what they are held to be: for each category one decision.
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
    const { category, route, parts } = this.view;
    if (route.kind === "parts") return parts[at] ? this.grid.select(parts[at]) : undefined;
    const photos = this.chosenPhotos();
    const near = route.kind === "gallery" && this.view.suggestions[photos[0]] ? { category: { id: this.view.suggestions[photos[0]].category } } : this.view.near[at];
    if (!near || (route.kind === "gallery" && at > 0)) return undefined;
    const sources = [...new Set(photos.map((id) => this.view.categoryOf(id)).filter(Boolean))];
    const seen = this.versionsOf([...(category ? [category.id] : sources), near.category.id]);
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
    if (this.view.route.kind === "look") {
      const { looks } = this.view;
      return looks[looks.indexOf(this.view.route.id) + step] ?? null;
    }
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
        await this.goOnHere(decision);
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

  // After a decision about photos: the next group, the list that "more like this" came from, or the same view again.
  async goOnHere(decision) {
    const { route } = this.view;
    if (route.kind === "look") {
      await this.open({ ...route, otherwise: this.neighbor(1) ?? undefined }, { keep: true });
    } else if (route.kind === "similar" && decision.kind !== "unsure") {
      await this.open(route.back ?? null);
    } else if (route.kind === "parts") {
      await this.open({ kind: "category", id: route.id });
    } else {
      await this.reload();
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
      if (isHere || !["category", "new", "known"].includes(this.view.route.kind)) {
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
