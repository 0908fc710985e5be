// The page: what is there, which view is open. What is drawn and decided is in the classes that extend it.

import { alarm, note, say, waitFor } from "./announce.js";
import { get, Refusal } from "./api.js";
import { byId, icon, plural } from "./dom.js";
import { hashOf, measure, routeOf } from "./routes.js";
import { isKnown } from "./lists.js";
import { dropSearch } from "./sidebar.js";
import { askFor } from "./views.js";

const POLL_MS = 2500;
const WORKING_POLL_MS = 500;

export class Page {
  constructor() {
    this.overview = null;
    this.categories = new Map();
    this.view = null; // { route, ids, versions, category, near, categoryOf }
    this.grid = null;
    this.map = null;
    this.ticket = 0;
    this.isDeciding = false;
    this.isCutOff = false;
  }

  async start() {
    byId("toggle-list").append(icon("menu"));
    byId("toggle-list").addEventListener("click", () => this.toggleList());
    byId("main").addEventListener("pointerdown", () => this.toggleList(false));
    document.addEventListener("keydown", (event) => this.pressKey(event));
    window.addEventListener("popstate", () => this.guard(() => this.open(routeOf(location.hash))));
    document.addEventListener("visibilitychange", () => this.poll());
    this.pollAgain();
    await this.guard(async () => {
      await this.loadOverview();
      const { job } = this.overview;
      this.toldJob = job && job.state !== "running" ? job.id : 0; // what was done before is no news
      await this.open(routeOf(location.hash));
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
    byId("summary").textContent = this.summary();
    this.showTopbar();
    this.showJob(this.overview.job);
  }

  // The sentence of the header: it follows every decision.
  summary() {
    const { outlook, status } = this.overview;
    if (outlook.state === "accepted") return `Stage ${outlook.stage} is accepted: ${plural(status.n_labels, "photo")} labeled. Add photos to go on.`;
    return outlook.sentence[0].toUpperCase() + outlook.sentence.slice(1);
  }

  pollAgain() {
    const isWorking = this.overview?.job?.state === "running";
    setTimeout(async () => {
      await this.poll();
      this.pollAgain();
    }, isWorking ? WORKING_POLL_MS : POLL_MS);
  }

  // Looks whether somebody else has decided something; what this page shows must be what it decides about.
  async poll() {
    if (document.visibilityState !== "visible" || this.isDeciding || this.isPolling || !this.overview) return;
    this.isPolling = true;
    try {
      const { revision, job } = await get("revision");
      if (this.isCutOff) note("The server answers again.");
      this.isCutOff = false;
      if (await this.followJob(job)) return;
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
    if (route.kind === "similar" || route.kind === "parts") return route.from ?? "new";
    if (route.kind === "gallery") return "checks";
    if (route.kind !== "category") return route.kind;
    return category && category.state !== "discovered" && category.state !== "rejected" ? "known" : "new";
  }

  routeOfTab(tab) {
    if (tab === "new") return this.overview.queue.length ? { kind: "category", id: this.overview.queue[0] } : { kind: "new" };
    if (tab === "known") return this.known.length ? { kind: "category", id: this.known[0].id } : { kind: "known" };
    if (tab === "look") return { kind: "look", id: this.view?.looks?.[0] ?? 1 };
    if (tab === "checks") return { kind: "gallery", id: "mistakes" };
    return { kind: tab };
  }

  // --- opening a view

  navigate(route) {
    dropSearch();
    const hash = hashOf(route);
    if (location.hash !== hash) history.pushState(null, "", hash);
    return this.guard(() => this.open(route));
  }

  async open(route, { keep = false } = {}) {
    const started = performance.now();
    if (!route || ["new", "known", "checks"].includes(route.kind)) route = this.routeOfTab(route?.kind ?? "new"); // to the first of them
    const ticket = ++this.ticket;
    const answer = await waitFor(askFor(route));
    if (ticket !== this.ticket) return; // something else was opened meanwhile
    const isSame = keep && hashOf(route) === hashOf(this.view.route);
    if (route.kind === "look" && answer.look !== null) route = { kind: "look", id: answer.look };
    this.view = { route, ids: answer.photo_ids, versions: answer.versions, category: answer.category ?? null,
      near: answer.near ?? [], nPhotos: answer.n_photos ?? answer.photo_ids.length, categoryOf: this.sourceOf(route, answer),
      looks: answer.looks ?? [], listed: answer.listed ?? [], growth: answer.growth ?? [], similarity: answer.similarity ?? {}, parts: answer.parts ?? [],
      suggestions: answer.suggestions ?? {}, elsewhere: answer.elsewhere ?? [] };
    this.suggested = this.alternativesOf = null;
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

  // Which category each photo of a view is in: decisions about photos touch those.
  sourceOf(route, answer) {
    if (route.kind === "category" || route.kind === "parts") return () => route.id;
    if (route.kind === "map") {
      const { places } = answer;
      return (photoId) => places.categories[places.atOf.get(photoId)];
    }
    const categoryOf = new Map(answer.photos.map((photo) => [photo.id, photo.category]));
    return (photoId) => categoryOf.get(photoId) ?? this.grid?.details.get(photoId)?.category ?? 0;
  }
}
