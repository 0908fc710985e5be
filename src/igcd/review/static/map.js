// The photos in the plane: like ones are near each other. A lasso drawn around some of them selects them.

import { breakable, button, el, plural, thumbnail } from "./dom.js";
import { Places } from "./places.js";
import { colorOf, KINDS, Points } from "./points.js";

const POINT_PIXELS = 8;
const MAX_NAMES = 40;
const NAME_PIXELS = 13;
const NEAR_PIXELS = 12;
const NO_PLACES = { ids: [], x: [], y: [], categories: [], kinds: [], isSettled: [] };
const MAX_ZOOM = 60;
const MAX_STRETCH = 1.5;
const MARGIN = 56; // what lies over the edges of the map must not cover photos

// The even-odd rule: a ray from the point crosses the outline an odd number of times.
export function isInside(x, y, outline) {
  let inside = false;
  for (let i = 0, j = outline.length - 1; i < outline.length; j = i++) {
    const [xi, yi] = outline[i];
    const [xj, yj] = outline[j];
    if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) inside = !inside;
  }
  return inside;
}

export class PhotoMap {
  // titleOf(categoryId); onSelect(photo ids)
  constructor({ titleOf, onSelect }) {
    this.titleOf = titleOf;
    this.onSelect = onSelect;
    this.places = new Places(NO_PLACES);
    this.selected = new Set();
    this.hiddenKinds = new Set();
    this.hiddenCategories = new Set();
    this.view = { x: 0.5, y: 0.5, zoom: 1 };
    this.minZoom = 1;
    this.shape = 1; // width of all photos by their height
    this.isFitted = false;
    this.pointers = new Map();
    this.pans = false;
    this.ground = el("canvas", { class: "map-points", "aria-hidden": "true" });
    this.layer = new Points(this.ground);
    this.canvas = el("canvas", { class: "map-overlay", tabindex: "0", role: "application", "aria-label":
      "Map of the photos. Arrows move, plus and minus zoom, Enter selects all photos in view." });
    this.hint = el("div", { class: "map-hint", hidden: true });
    this.panButton = button("", () => this.setPans(!this.pans), { picture: "pan", label: "Dragging moves the map", "aria-pressed": "false" });
    const tools = el("div", { class: "map-tools" }, this.panButton,
      button("", () => this.zoomBy(1.6), { picture: "larger", label: "Nearer" }),
      button("", () => this.zoomBy(1 / 1.6), { picture: "smaller", label: "Farther" }),
      button("", () => this.fit(), { picture: "fit", label: "Show all" }));
    const kinds = el("div", { class: "map-kinds" }, ...KINDS.map((kind) => this.check(kind, el("span", { class: `swatch ${kind}` }), this.hiddenKinds, kind)));
    this.legend = el("div", { class: "map-legend", role: "group", "aria-label": "Categories on the map" });
    this.element = el("div", { class: "map-view" }, this.ground, this.canvas, tools, this.legend, kinds, this.hint);
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.element);
    this.scheme = matchMedia("(prefers-color-scheme: dark)");
    this.redraw = () => this.refresh();
    this.scheme.addEventListener("change", this.redraw);
    this.canvas.addEventListener("pointerdown", (event) => this.press(event));
    this.canvas.addEventListener("pointermove", (event) => this.drag(event));
    this.canvas.addEventListener("pointerup", (event) => this.release(event));
    this.canvas.addEventListener("pointercancel", (event) => this.release(event));
    this.canvas.addEventListener("pointerleave", () => this.showHint(null));
    this.canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.canvas.addEventListener("keydown", (event) => this.pressKey(event));
  }

  destroy() {
    this.observer.disconnect();
    if (this.frameAsked) cancelAnimationFrame(this.frameAsked);
    this.layer.destroy();
    this.scheme.removeEventListener("change", this.redraw);
    this.element.remove();
  }

  // A box that shows or hides part of the map.
  check(text, swatch, hidden, key) {
    const box = el("input", { type: "checkbox" });
    box.checked = !hidden.has(key);
    box.addEventListener("change", () => {
      if (box.checked) hidden.delete(key);
      else hidden.add(key);
      this.refresh();
    });
    return el("label", { class: "check" }, box, swatch, el("span", {}, ...breakable(text)));
  }

  show(places) {
    this.places = places;
    this.names = places.middles();
    this.refresh();
  }

  // After a filter, the colors or the photos have changed.
  refresh() {
    const isDark = this.scheme.matches;
    const { categories, kinds, shown } = this.places;
    const isKindShown = KINDS.map((kind) => !this.hiddenKinds.has(kind));
    for (let at = 0; at < shown.length; at++) shown[at] = isKindShown[kinds[at]] && !this.hiddenCategories.has(categories[at]) ? 1 : 0;
    this.layer.set(this.places, isDark);
    const swatch = (category) => {
      const dot = el("span", { class: "swatch" });
      dot.style.background = colorOf(category, isDark);
      return dot;
    };
    const scrolled = this.legend.scrollTop;
    const all = button(this.hiddenCategories.size ? "Show all" : "Hide all", () => {
      this.hiddenCategories = new Set(this.hiddenCategories.size ? [] : this.names.map(({ category }) => category));
      this.refresh();
    }, { kind: "quiet" });
    this.legend.replaceChildren(all, ...this.names.map(({ category, n }) => {
      const entry = this.check(this.titleOf(category), swatch(category), this.hiddenCategories, category);
      entry.title = plural(n, "photo");
      return entry;
    }));
    this.legend.hidden = !this.names.length;
    this.legend.scrollTop = scrolled;
    this.draw();
  }

  mark(photoIds) {
    this.selected = new Set(photoIds);
    this.draw();
  }

  // --- from the plane to the screen and back

  get scale() {
    return (Math.min(this.canvas.clientWidth, this.canvas.clientHeight) - 2 * MARGIN) * this.view.zoom;
  }

  toScreen(x, y) {
    return [this.canvas.clientWidth / 2 + (x - this.view.x) * this.scale * this.stretch,
      this.canvas.clientHeight / 2 + (y - this.view.y) * this.scale];
  }

  // All photos for which isWanted(entry, x, y on the screen) holds and about which there is something to decide.
  choosable(isWanted) {
    const { ids, x, y, isSettled, shown } = this.places;
    const [left, top, across, down] = this.frame();
    const found = [];
    for (let at = 0; at < ids.length; at++) {
      if (shown[at] && !isSettled[at] && isWanted(left + x[at] * across, top + y[at] * down)) found.push(ids[at]);
    }
    return found;
  }

  // Where the corner of the plane is on the screen and how large the plane is: what `toScreen` works out, once for all.
  frame() {
    const [left, top] = this.toScreen(0, 0);
    return [left, top, this.scale * this.stretch, this.scale];
  }

  toPlane(sx, sy) {
    return [this.view.x + (sx - this.canvas.clientWidth / 2) / (this.scale * this.stretch),
      this.view.y + (sy - this.canvas.clientHeight / 2) / this.scale];
  }

  // How much wider than high the plane is drawn, so that photos fill the screen: distances are only roughly meant anyway.
  get stretch() {
    const screen = (this.canvas.clientWidth - 2 * MARGIN) / (this.canvas.clientHeight - 2 * MARGIN);
    return Math.min(MAX_STRETCH, Math.max(1 / MAX_STRETCH, screen / this.shape));
  }

  // --- drawing

  // Whatever changes until the next frame is drawn once.
  draw() {
    this.frameAsked ??= requestAnimationFrame(() => {
      this.frameAsked = null;
      this.drawNow();
    });
  }

  drawNow() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!width || !height) return;
    if (!this.isFitted && this.places.length) this.fit();
    const density = window.devicePixelRatio || 1;
    const crowd = Math.min(1, Math.sqrt(4000 / Math.max(1, this.places.length))) * 0.6 + 0.4;
    const size = POINT_PIXELS * crowd * Math.min(2.2, Math.sqrt(this.view.zoom));
    this.layer.draw(this.view, [this.scale * this.stretch, this.scale], size);
    this.canvas.width = width * density;
    this.canvas.height = height * density;
    const pen = this.canvas.getContext("2d");
    pen.scale(density, density);
    const style = getComputedStyle(document.documentElement);
    const color = (name) => style.getPropertyValue(name).trim();
    this.drawNames(pen, color);
    if (this.selected.size) {
      pen.lineWidth = 2;
      pen.strokeStyle = color("--text");
      for (const id of this.selected) {
        const at = this.places.atOf.get(id);
        if (at === undefined) continue;
        const [x, y] = this.toScreen(this.places.x[at], this.places.y[at]);
        pen.beginPath();
        pen.arc(x, y, size / 2 + 3, 0, 7);
        pen.stroke();
      }
    }
    if (this.lasso?.length > 1) {
      pen.beginPath();
      this.lasso.forEach(([x, y], at) => (at ? pen.lineTo(x, y) : pen.moveTo(x, y)));
      pen.closePath();
      pen.globalAlpha = 0.14;
      pen.fillStyle = color("--accent");
      pen.fill();
      pen.globalAlpha = 1;
      pen.lineWidth = 2;
      pen.strokeStyle = color("--accent");
      pen.stroke();
    }
  }

  // Names in the middle of their categories, the largest first; one that would lie on another is left out.
  drawNames(pen, color) {
    pen.font = `600 ${NAME_PIXELS}px system-ui, sans-serif`;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.lineWidth = 4;
    pen.lineJoin = "round";
    const taken = [];
    for (const name of this.names ?? []) {
      if (taken.length >= MAX_NAMES) break;
      if (this.hiddenCategories.has(name.category)) continue;
      const [x, y] = this.toScreen(name.x, name.y);
      const text = this.titleOf(name.category);
      const half = pen.measureText(text).width / 2 + 4;
      const isFree = taken.every(([ox, oy, other]) => Math.abs(oy - y) > NAME_PIXELS + 4 || Math.abs(ox - x) > half + other);
      if (!isFree || x < 0 || y < 0 || x > this.canvas.clientWidth || y > this.canvas.clientHeight) continue;
      taken.push([x, y, half]);
      pen.strokeStyle = color("--ground");
      pen.strokeText(text, x, y);
      pen.fillStyle = color("--text");
      pen.fillText(text, x, y);
    }
  }

  // --- pointer: one draws the lasso or moves, two fingers zoom

  place(event) {
    const box = this.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  press(event) {
    this.showHint(null);
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, this.place(event));
    if (this.pointers.size === 2) {
      this.lasso = null;
      this.spread = this.spreadNow();
    } else if (!this.pans && event.button === 0) {
      this.lasso = [this.place(event)];
    }
  }

  drag(event) {
    const at = this.place(event);
    const before = this.pointers.get(event.pointerId);
    if (!before) {
      this.showHint(this.pointNear(at), at);
      return;
    }
    this.pointers.set(event.pointerId, at);
    if (this.pointers.size === 2) {
      const spread = this.spreadNow();
      this.zoomBy(spread / this.spread, at);
      this.spread = spread;
    } else if (this.lasso) {
      this.lasso.push(at);
      this.draw();
    } else {
      this.view.x -= (at[0] - before[0]) / (this.scale * this.stretch);
      this.view.y -= (at[1] - before[1]) / this.scale;
      this.draw();
    }
  }

  release(event) {
    this.pointers.delete(event.pointerId);
    const lasso = this.lasso;
    this.lasso = null;
    if (!lasso) return;
    const xs = lasso.map(([x]) => x);
    const isClick = Math.max(...xs) - Math.min(...xs) < 4 && lasso.length < 6;
    const adds = event.shiftKey || event.ctrlKey || event.metaKey;
    let found;
    if (isClick) {
      const at = this.pointNear(lasso[0]);
      found = at === null || this.places.isSettled[at] ? [] : [this.places.ids[at]];
    } else {
      found = this.choosable((x, y) => isInside(x, y, lasso));
    }
    this.choose(adds ? [...new Set([...this.selected, ...found])] : found);
  }

  choose(photoIds) {
    this.mark(photoIds);
    this.onSelect(photoIds);
  }

  spreadNow() {
    const [[ax, ay], [bx, by]] = [...this.pointers.values()];
    return Math.max(1, Math.hypot(ax - bx, ay - by));
  }

  // The entry of the photo at a place of the screen, or null.
  pointNear([x, y]) {
    const { shown } = this.places;
    const [left, top, across, down] = this.frame();
    let nearest = null;
    let distance = NEAR_PIXELS;
    for (let at = 0; at < shown.length; at++) {
      if (!shown[at]) continue;
      const d = Math.hypot(left + this.places.x[at] * across - x, top + this.places.y[at] * down - y);
      if (d < distance) [nearest, distance] = [at, d];
    }
    return nearest;
  }

  showHint(at, [x, y] = [0, 0]) {
    this.hint.hidden = at === null;
    if (at === null) {
      this.hinted = null;
      return;
    }
    const [id, category, kind] = [this.places.ids[at], this.places.categories[at], KINDS[this.places.kinds[at]]];
    if (this.hinted !== id) {
      this.hinted = id;
      this.hint.replaceChildren(thumbnail(id), el("span", { text: category ? `${this.titleOf(category)}, ${kind}` : "unsure" }));
    }
    this.hint.style.left = `${this.canvas.offsetLeft + Math.min(x + 14, this.canvas.clientWidth - 240)}px`;
    this.hint.style.top = `${Math.min(y + 14, this.canvas.clientHeight - 96)}px`;
  }

  wheel(event) {
    event.preventDefault();
    this.zoomBy(Math.exp(-event.deltaY / 400), this.place(event));
  }

  // --- view

  setPans(pans) {
    this.pans = pans;
    this.panButton.setAttribute("aria-pressed", pans);
    this.canvas.classList.toggle("pans", pans);
  }

  zoomBy(factor, at = [this.canvas.clientWidth / 2, this.canvas.clientHeight / 2]) {
    const [x, y] = this.toPlane(...at);
    this.view.zoom = Math.min(MAX_ZOOM, Math.max(this.minZoom, this.view.zoom * factor));
    const [newX, newY] = this.toPlane(...at);
    this.view.x += x - newX;
    this.view.y += y - newY;
    this.draw();
  }

  fit() {
    const { left, right, top, bottom } = this.places.bounds();
    this.shape = Math.max(right - left, 1e-3) / Math.max(bottom - top, 1e-3);
    const base = Math.min(this.canvas.clientWidth, this.canvas.clientHeight) - 2 * MARGIN;
    const across = (this.canvas.clientWidth - 2 * MARGIN) / (Math.max(right - left, 1e-3) * base * this.stretch);
    const down = (this.canvas.clientHeight - 2 * MARGIN) / (Math.max(bottom - top, 1e-3) * base);
    this.view = { x: (left + right) / 2, y: (top + bottom) / 2, zoom: Math.min(MAX_ZOOM, across, down) };
    this.minZoom = Math.min(1, this.view.zoom);
    this.isFitted = true;
    this.draw();
  }

  pressKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = 60 / this.scale;
    const moves = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step] };
    if (event.key in moves) {
      this.view.x += moves[event.key][0];
      this.view.y += moves[event.key][1];
      this.draw();
    } else if (event.key === "+" || event.key === "=") {
      this.zoomBy(1.4);
    } else if (event.key === "-") {
      this.zoomBy(1 / 1.4);
    } else if (event.key === "0") {
      this.fit();
    } else if (event.key === "Enter") {
      const { clientWidth: width, clientHeight: height } = this.canvas;
      this.choose(this.choosable((x, y) => x >= 0 && y >= 0 && x <= width && y <= height));
    } else if (event.key === "Escape" && this.selected.size) {
      this.choose([]);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }
}
