// A grid of photos of any number: only those in view are elements. A listbox with several selected options.

import { el, fileName, percent, thumbnailUrl } from "./dom.js";

const GAP = 8;
const OVERSCAN_ROWS = 1;
const DRAG_PIXELS = 5;
const EDGE_PIXELS = 48;
const SIZES = [96, 128, 168, 220, 300];
const DETAILS_AT_ONCE = 200;
let nGrids = 0;

export class PhotoGrid {
  // loadDetails(ids) -> photos; badgesOf(photo) -> texts; onSelection(set); onOpen(index); onActive(photo id)
  constructor({ label, loadDetails, badgesOf, onSelection, onOpen, onActive = () => {}, size = 2 }) {
    this.loadDetails = loadDetails;
    this.badgesOf = badgesOf;
    this.onSelection = onSelection;
    this.onOpen = onOpen;
    this.onActive = onActive;
    this.prefix = `grid${++nGrids}`;
    this.ids = [];
    this.details = new Map();
    this.asked = new Set();
    this.selection = new Set();
    this.active = 0;
    this.anchor = 0;
    this.size = size;
    this.tiles = new Map();
    this.columns = 1;
    this.inner = el("div", { class: "grid-inner", role: "presentation" });
    this.element = el(
      "div",
      { class: "grid", role: "listbox", tabindex: "0", "aria-multiselectable": "true", "aria-label": label },
      this.inner,
    );
    this.element.addEventListener("scroll", () => this.renderSoon(), { passive: true });
    this.element.addEventListener("keydown", (event) => this.pressKey(event));
    this.element.addEventListener("click", (event) => this.click(event));
    this.element.addEventListener("dblclick", (event) => this.open(this.indexAt(event)));
    this.element.addEventListener("pointerdown", (event) => this.startDrag(event));
    this.observer = new ResizeObserver(() => this.layout());
    this.observer.observe(this.element);
  }

  destroy() {
    this.observer.disconnect();
    for (const tile of this.tiles.values()) tile.firstChild.removeAttribute("src"); // stops what still loads
    this.element.remove();
  }

  // keep: the same list again after a change, with what of the selection is still there.
  show(ids, photos, { keep = false, label } = {}) {
    const activeId = this.ids[this.active];
    this.ids = ids;
    this.asked.clear();
    this.details = new Map(photos.map((photo) => [photo.id, photo]));
    for (const tile of this.tiles.values()) tile.remove();
    this.tiles.clear();
    if (label) this.element.setAttribute("aria-label", label);
    if (keep) {
      const present = new Set(ids);
      this.selection = new Set([...this.selection].filter((id) => present.has(id)));
      const at = ids.indexOf(activeId);
      this.active = at >= 0 ? at : Math.min(this.active, Math.max(0, ids.length - 1));
    } else {
      this.selection = new Set();
      this.active = 0;
      this.element.scrollTop = 0;
    }
    this.anchor = this.active;
    this.layout();
    this.onSelection(this.selection);
  }

  get activeId() {
    return this.ids[this.active];
  }

  selectedInOrder() {
    return this.ids.filter((id) => this.selection.has(id));
  }

  select(ids) {
    this.selection = new Set(ids);
    this.showSelection();
  }

  toggle(index) {
    const id = this.ids[index];
    if (!this.selection.delete(id)) this.selection.add(id);
    this.showSelection();
  }

  resize(step) {
    this.size = Math.min(SIZES.length - 1, Math.max(0, this.size + step));
    this.layout();
  }

  // --- what is in view

  layout() {
    const style = getComputedStyle(this.element);
    const width = this.element.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    if (width <= 0) return;
    const first = this.tileSide ? this.firstRow() * this.columns : 0;
    this.columns = Math.max(2, Math.round((width + GAP) / (SIZES[this.size] + GAP)));
    const side = (width - GAP * (this.columns - 1)) / this.columns;
    const changed = side !== this.tileSide;
    this.tileSide = side;
    this.inner.style.height = `${Math.max(0, Math.ceil(this.ids.length / this.columns) * (side + GAP) - GAP)}px`;
    if (changed && first) this.element.scrollTop = Math.floor(first / this.columns) * (side + GAP);
    for (const [index, tile] of this.tiles) this.place(tile, index);
    this.render();
  }

  firstRow() {
    return Math.max(0, Math.floor(this.element.scrollTop / (this.tileSide + GAP)));
  }

  renderSoon() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      this.render();
    });
  }

  render() {
    if (!this.tileSide) return;
    const rowHeight = this.tileSide + GAP;
    const lastRow = Math.floor((this.element.scrollTop + this.element.clientHeight) / rowHeight);
    const from = Math.max(0, (this.firstRow() - OVERSCAN_ROWS) * this.columns);
    const to = Math.min(this.ids.length, (lastRow + 1 + OVERSCAN_ROWS) * this.columns);
    for (const [index, tile] of this.tiles) {
      if (index >= from && index < to) continue;
      tile.firstChild.removeAttribute("src");
      tile.remove();
      this.tiles.delete(index);
    }
    const fresh = document.createDocumentFragment();
    const missing = [];
    for (let index = from; index < to; index++) {
      if (!this.tiles.has(index)) {
        const tile = this.makeTile(index);
        this.tiles.set(index, tile);
        fresh.append(tile);
      }
      if (!this.details.has(this.ids[index]) && !this.asked.has(this.ids[index])) missing.push(this.ids[index]);
    }
    this.inner.append(fresh);
    this.showActive();
    if (missing.length) this.askDetails(missing.slice(0, DETAILS_AT_ONCE));
  }

  async askDetails(ids) {
    for (const id of ids) this.asked.add(id);
    let photos;
    try {
      photos = await this.loadDetails(ids);
    } catch {
      for (const id of ids) this.asked.delete(id); // asked again at the next scroll
      return;
    }
    for (const photo of photos) this.details.set(photo.id, photo);
    for (const [index, tile] of this.tiles) this.describe(tile, index);
  }

  makeTile(index) {
    const image = el("img", { alt: "", draggable: "false", decoding: "async" });
    const tile = el("div", { class: "tile", role: "option", id: `${this.prefix}-${this.ids[index]}` }, image);
    image.addEventListener("load", () => image.classList.add("loaded"));
    image.addEventListener("error", () => tile.classList.add("broken"));
    image.src = thumbnailUrl(this.ids[index]);
    tile.append(el("span", { class: "badges", "aria-hidden": "true" }));
    this.place(tile, index);
    this.describe(tile, index);
    return tile;
  }

  place(tile, index) {
    const x = (index % this.columns) * (this.tileSide + GAP);
    const y = Math.floor(index / this.columns) * (this.tileSide + GAP);
    tile.style.width = tile.style.height = `${this.tileSide}px`;
    tile.style.transform = `translate(${x}px, ${y}px)`;
  }

  describe(tile, index) {
    const photo = this.details.get(this.ids[index]);
    const badges = photo ? this.badgesOf(photo) : [];
    tile.setAttribute("aria-selected", this.selection.has(this.ids[index]));
    tile.setAttribute("aria-posinset", index + 1);
    tile.setAttribute("aria-setsize", this.ids.length);
    tile.dataset.index = index;
    if (photo) {
      tile.dataset.file = fileName(photo.path);
      tile.title = photo.path;
      const certainty = `certainty ${percent(photo.probability)}`;
      tile.setAttribute("aria-label", [fileName(photo.path), certainty, ...badges].join(", "));
    } else {
      tile.setAttribute("aria-label", `photo ${this.ids[index]}`);
    }
    tile.lastChild.replaceChildren(...badges.map((text) => el("span", { class: "badge", text })));
  }

  showSelection() {
    for (const [index, tile] of this.tiles) tile.setAttribute("aria-selected", this.selection.has(this.ids[index]));
    this.onSelection(this.selection);
  }

  showActive() {
    for (const [index, tile] of this.tiles) tile.classList.toggle("active", index === this.active);
    const tile = this.tiles.get(this.active);
    if (tile) this.element.setAttribute("aria-activedescendant", tile.id);
    else this.element.removeAttribute("aria-activedescendant");
    if (this.ids.length) this.onActive(this.activeId);
  }

  goTo(index) {
    this.active = Math.min(this.ids.length - 1, Math.max(0, index));
    const rowHeight = this.tileSide + GAP;
    const top = Math.floor(this.active / this.columns) * rowHeight;
    const view = this.element;
    if (top < view.scrollTop) view.scrollTop = top;
    const bottomSpace = 84; // what the bar with the actions covers
    if (top + rowHeight > view.scrollTop + view.clientHeight - bottomSpace) {
      view.scrollTop = top + rowHeight - view.clientHeight + bottomSpace;
    }
    this.render();
  }

  // --- keys

  pressKey(event) {
    if (event.altKey || !this.ids.length) return;
    const isControl = event.ctrlKey || event.metaKey;
    const page = Math.max(1, Math.floor(this.element.clientHeight / (this.tileSide + GAP))) * this.columns;
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: this.columns, ArrowUp: -this.columns, PageDown: page,
      PageUp: -page, Home: -this.ids.length, End: this.ids.length };
    if (event.key in steps) {
      const step = steps[event.key];
      const leaves = Math.abs(step) === this.columns && (this.active + step < 0 || this.active + step >= this.ids.length);
      if (!leaves || event.key === "ArrowDown") this.goTo(this.active + step);
      if (event.shiftKey) this.selectRange(this.anchor, this.active, isControl);
      else this.anchor = this.active;
    } else if (event.key === " ") {
      this.toggle(this.active);
      this.anchor = this.active;
    } else if (event.key === "Enter") {
      this.open(this.active);
    } else if (event.key.toLowerCase() === "a" && isControl) {
      this.select(this.ids);
    } else if (event.key === "Escape" && this.selection.size) {
      this.select([]);
    } else {
      return;
    }
    event.preventDefault();
  }

  selectRange(from, to, adds) {
    const range = this.ids.slice(Math.min(from, to), Math.max(from, to) + 1);
    this.select(adds ? [...this.selection, ...range] : range);
  }

  open(index) {
    if (index >= 0 && index < this.ids.length) this.onOpen(index);
  }

  // --- pointer

  indexAt(event) {
    const tile = event.target.closest(".tile");
    return tile ? Number(tile.dataset.index) : -1;
  }

  click(event) {
    if (this.dragged) {
      this.dragged = false;
      return;
    }
    const index = this.indexAt(event);
    if (index < 0) {
      this.select([]);
      return;
    }
    const isControl = event.ctrlKey || event.metaKey;
    this.active = index;
    if (event.shiftKey) {
      this.selectRange(this.anchor, index, isControl);
    } else if (isControl || this.pointerType === "touch") {
      this.toggle(index);
      this.anchor = index;
    } else {
      this.select([this.ids[index]]);
      this.anchor = index;
    }
    this.showActive();
  }

  startDrag(event) {
    this.pointerType = event.pointerType;
    this.dragged = false;
    const onScrollbar = event.target === this.element && event.offsetX > this.element.clientWidth;
    const scrolls = event.pointerType === "touch" && !this.element.classList.contains("dragging-selects");
    if (event.button !== 0 || onScrollbar || scrolls) return;
    const start = this.positionOf(event);
    const base = event.ctrlKey || event.metaKey || event.shiftKey || event.pointerType === "touch" ? [...this.selection] : [];
    let last = event;
    let band = null;
    let timer;
    const update = () => {
      const now = this.positionOf(last);
      const box = { left: Math.min(start.x, now.x), top: Math.min(start.y, now.y), right: Math.max(start.x, now.x),
        bottom: Math.max(start.y, now.y) };
      band.style.left = `${box.left}px`;
      band.style.top = `${box.top}px`;
      band.style.width = `${box.right - box.left}px`;
      band.style.height = `${box.bottom - box.top}px`;
      this.select([...base, ...this.idsIn(box)]);
    };
    const scrollAtEdge = () => {
      const view = this.element.getBoundingClientRect();
      if (last.clientY < view.top + EDGE_PIXELS) this.element.scrollTop -= 14;
      else if (last.clientY > view.bottom - EDGE_PIXELS) this.element.scrollTop += 14;
      update();
      timer = requestAnimationFrame(scrollAtEdge);
    };
    const move = (next) => {
      last = next;
      if (!band) {
        if (Math.hypot(next.clientX - event.clientX, next.clientY - event.clientY) < DRAG_PIXELS) return;
        band = el("div", { class: "band" });
        this.inner.append(band);
        this.element.setPointerCapture(event.pointerId);
        timer = requestAnimationFrame(scrollAtEdge);
      }
      update();
    };
    const end = () => {
      this.element.removeEventListener("pointermove", move);
      this.element.removeEventListener("pointerup", end);
      this.element.removeEventListener("pointercancel", end);
      cancelAnimationFrame(timer);
      if (!band) return;
      band.remove();
      this.dragged = true; // the click that follows is part of it
      setTimeout(() => {
        this.dragged = false;
      });
      this.element.focus({ preventScroll: true });
    };
    this.element.addEventListener("pointermove", move);
    this.element.addEventListener("pointerup", end);
    this.element.addEventListener("pointercancel", end);
  }

  positionOf(event) {
    const box = this.inner.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  idsIn({ left, top, right, bottom }) {
    const step = this.tileSide + GAP;
    const first = { column: Math.max(0, Math.floor((left + GAP) / step)), row: Math.max(0, Math.floor((top + GAP) / step)) };
    const last = { column: Math.min(this.columns - 1, Math.floor(right / step)), row: Math.floor(bottom / step) };
    const ids = [];
    for (let row = first.row; row <= last.row; row++) {
      for (let column = first.column; column <= last.column; column++) {
        const id = this.ids[row * this.columns + column];
        if (id !== undefined) ids.push(id);
      }
    }
    return ids;
  }
}
