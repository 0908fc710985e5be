// The map: images in the plane, stages as a slider, filters, a legend, and what is under the pointer.

const canvas = document.getElementById("map");
const context = canvas.getContext("2d");
const hover = document.getElementById("hover");
const legend = document.getElementById("legend");
const chosenPanel = document.getElementById("chosen");
const slider = document.getElementById("stage");
const controls = document.getElementById("controls");
const MARGIN = 14;
const REACH = 14; // how near to a point the pointer has to be, in pixels
const FEW_POINTS = 160; // as many are drawn as pictures when the map is enlarged
const view = { stage: lastStage, only: null, verdictColors: null, zoom: 1, x: 0.5, y: 0.5, chosen: NONE, pointed: NONE, shown: [], side: 1 };
const byControl = (name) => controls.elements[name]?.value ?? "";

const sheetImages = data.sheet_rows.map((_, sheet) => {
  const probe = make("span", { class: `tile sheet-${sheet}` });
  canvas.parentElement.append(probe);
  const source = getComputedStyle(probe).backgroundImage.slice(5, -2);
  probe.remove();
  const loaded = new Image();
  loaded.addEventListener("load", draw);
  loaded.src = source;
  return loaded;
});

// The images that pass the filters, whatever group is picked in the legend.
function filtered() {
  const { group } = answersAt(view.stage);
  const [kind, verdict] = [byControl("kind"), byControl("verdict")];
  const split = data.splits.indexOf(byControl("split"));
  const wanted = byControl("search").trim().toLowerCase();
  const isWanted = (text) => text.toLowerCase().includes(wanted);
  const passing = [];
  for (let i = 0; i < nImages; i++) {
    if (group[i] === NOT_YET) continue;
    if (kind && isNew(group[i], view.stage) !== (kind === "new")) continue;
    if (split >= 0 && images.split[i] !== split) continue;
    if (verdict && verdictOf(i, view.stage) !== verdict) continue;
    if (wanted && !isWanted(images.id[i]) && !isWanted(nameOf(group[i])) && !(images.truth[i] >= 0 && isWanted(data.truths[images.truth[i]]))) continue;
    passing.push(i);
  }
  return passing;
}

const screenX = (image) => view.side / 2 + (images.x[image] / 10_000 - view.x) * view.zoom * (view.side - 2 * MARGIN);
const screenY = (image) => view.side / 2 + (images.y[image] / 10_000 - view.y) * view.zoom * (view.side - 2 * MARGIN);

const paletteColor = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);

function pointColor(image, group) {
  if (!view.verdictColors) return colorOf(group, view.stage);
  return view.verdictColors[verdictOf(image, view.stage)] ?? view.verdictColors.labeled;
}

function diamond(x, y, r) {
  context.moveTo(x, y - r);
  context.lineTo(x + r, y);
  context.lineTo(x, y + r);
  context.lineTo(x - r, y);
  context.closePath();
}

function drawPoint(image, group, isCurrent) {
  const [x, y] = [screenX(image), screenY(image)];
  const grown = Math.min(Math.sqrt(view.zoom), 2);
  context.globalAlpha = isCurrent ? 0.95 : 0.5;
  context.fillStyle = context.strokeStyle = pointColor(image, group);
  context.beginPath();
  if (group < 0) {
    context.moveTo(x - 2.4, y - 2.4);
    context.lineTo(x + 2.4, y + 2.4);
    context.moveTo(x - 2.4, y + 2.4);
    context.lineTo(x + 2.4, y - 2.4);
    context.lineWidth = 1.2;
    context.stroke();
    return;
  }
  if (isNew(group, view.stage)) diamond(x, y, 4.6 * grown);
  else context.arc(x, y, 2.7 * grown, 0, 2 * Math.PI);
  if (images.split[image] === LABELED) {
    context.lineWidth = 1.3;
    context.stroke();
  } else context.fill();
}

function drawPicture(image, group, size) {
  const [x, y] = [screenX(image) - size / 2, screenY(image) - size / 2];
  const sheet = sheetImages[images.sheet[image]];
  const tile = sheet.naturalWidth / data.columns;
  const [column, row] = [images.tile[image] % data.columns, Math.floor(images.tile[image] / data.columns)];
  context.globalAlpha = 1;
  if (sheet.complete && tile) context.drawImage(sheet, column * tile, row * tile, tile, tile, x, y, size, size);
  context.lineWidth = isNew(group, view.stage) ? 3 : 1.5;
  context.strokeStyle = pointColor(image, group);
  context.strokeRect(x, y, size, size);
}

function draw() {
  const { group } = answersAt(view.stage);
  view.verdictColors = byControl("color") === "verdict"
    ? { right: paletteColor("--accent"), wrong: paletteColor("--warn"), labeled: paletteColor("--soft") }
    : null;
  const ratio = window.devicePixelRatio || 1;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, view.side, view.side);
  const inside = view.shown.filter((image) => Math.abs(screenX(image) - view.side / 2) < view.side / 2 + 20
    && Math.abs(screenY(image) - view.side / 2) < view.side / 2 + 20);
  const isShown = new Set(view.shown);
  context.globalAlpha = 1;
  context.fillStyle = paletteColor("--rule");
  for (let i = 0; i < nImages; i++)
    if (group[i] !== NOT_YET && !isShown.has(i)) context.fillRect(screenX(i) - 1, screenY(i) - 1, 2, 2);
  const asPictures = view.zoom > 1.5 && inside.length <= FEW_POINTS;
  for (const image of inside.filter((one) => !isNew(group[one], view.stage)).concat(inside.filter((one) => isNew(group[one], view.stage)))) {
    if (asPictures) drawPicture(image, group[image], view.side / 13);
    else drawPoint(image, group[image], images.stage[image] === view.stage);
  }
  context.globalAlpha = 1;
  for (const image of new Set([view.pointed, view.chosen])) {
    if (image < 0) continue;
    context.beginPath();
    context.arc(screenX(image), screenY(image), asPictures ? view.side / 16 : 9, 0, 2 * Math.PI);
    context.lineWidth = 2.5;
    context.strokeStyle = paletteColor("--ink");
    context.stroke();
  }
}

function resize() {
  view.side = canvas.clientWidth;
  const ratio = window.devicePixelRatio || 1;
  canvas.width = canvas.height = Math.round(view.side * ratio);
  draw();
}

// Which images pass the filters, the legend of their groups, and a sentence that says how many.
function update() {
  const passing = filtered();
  const said = answersAt(view.stage).group;
  view.shown = view.only === null ? passing : passing.filter((image) => said[image] === view.only);
  if (view.chosen >= 0 && answersAt(view.stage).group[view.chosen] === NOT_YET) view.chosen = NONE;
  const groups = new Set(view.shown.map((image) => said[image]).filter((group) => group >= 0));
  const nNew = [...groups].filter((group) => isNew(group, view.stage)).length;
  document.getElementById("stage-name").textContent = data.stages[view.stage];
  slider.setAttribute("aria-valuetext", data.stages[view.stage]);
  const sample = data.n_all > nImages ? ` (a sample of ${data.n_all.toLocaleString("en")})` : "";
  document.getElementById("shown").textContent =
    `${plural(view.shown.length, data.what)}${sample} in ${plural(groups.size, "category", "categories")}, ${nNew.toLocaleString("en")} of them ${data.is_judged ? "found and not labeled yet" : "new"}.`;
  drawLegend(passing);
  drawChosen();
  draw();
}

// The legend lists what could be picked, not only what is.
function drawLegend(passing) {
  const { group } = answersAt(view.stage);
  const counts = new Map();
  for (const image of passing) counts.set(group[image], (counts.get(group[image]) ?? 0) + 1);
  const order = [...counts.keys()].sort((a, b) =>
    isNew(b, view.stage) - isNew(a, view.stage) || (a < 0) - (b < 0) || counts.get(b) - counts.get(a));
  const hadFocus = legend.contains(document.activeElement) ? document.activeElement.dataset.group : null;
  legend.replaceChildren(...order.slice(0, 300).map((one) => {
    const swatch = make("i", { class: isNew(one, view.stage) ? "swatch diamond" : "swatch", "aria-hidden": "true" });
    swatch.style.background = colorOf(one, view.stage);
    const tag = isNew(one, view.stage) ? make("small", { class: "tag new" }, "new") : null;
    const behind = truthBehind(one, view.stage);
    const name = make("span", { class: "name" }, nameOf(one), behind === null ? null : make("small", {}, behind));
    const count = make("span", { class: "n" }, counts.get(one).toLocaleString("en"));
    const button = make("button", { type: "button", "aria-pressed": String(view.only === one), "data-group": one, onclick: () => {
      view.only = view.only === one ? null : one;
      update();
    } }, swatch, name, tag, count);
    return make("li", {}, button);
  }));
  if (hadFocus !== null) legend.querySelector(`[data-group="${hadFocus}"]`)?.focus();
}

function nearestTo(image, n) {
  const distance = (other) => Math.hypot(images.x[other] - images.x[image], images.y[other] - images.y[image]);
  return view.shown.filter((other) => other !== image).sort((a, b) => distance(a) - distance(b)).slice(0, n);
}

function drawChosen() {
  const image = view.chosen;
  chosenPanel.hidden = image < 0;
  if (image < 0) return;
  const { group } = answersAt(view.stage);
  const links = [];
  for (const entry of new Set([entryOf(group[image], NONE), entryOf(NONE, images.truth[image])]))
    if (entry >= 0) links.push(make("a", { href: `#category-${entry}` }, `All of ${data.entries[entry].name}`));
  const near = nearestTo(image, 8);
  chosenPanel.replaceChildren(
    picture(image, { class: "large" }),
    make("div", {},
      make("p", { class: "words" }, sentenceCase(describe(image, view.stage))),
      make("p", { class: "note", title: images.id[image] }, images.id[image].split("/").pop()),
      data.stages.length > 1 ? make("p", { class: "note" }, data.stages[images.stage[image]]) : null,
      make("p", {}, ...links.flatMap((link, at) => (at ? [" · ", link] : [link])))),
    make("div", { class: "near-list" }, make("p", { class: "note" }, "Closest on the map"), near.length ? pictureList(near, view.stage) : "none"));
}

function choose(image, { center = false } = {}) {
  view.chosen = image;
  if (center && image >= 0 && view.zoom > 1) [view.x, view.y] = [images.x[image] / 10_000, images.y[image] / 10_000];
  drawChosen();
  draw();
}

function at(event) {
  const box = canvas.getBoundingClientRect();
  const [x, y] = [event.clientX - box.left, event.clientY - box.top];
  let [best, least] = [NONE, view.zoom > 1.5 ? 2.4 * REACH : REACH];
  for (const image of view.shown) {
    const distance = Math.hypot(screenX(image) - x, screenY(image) - y);
    if (distance < least) [best, least] = [image, distance];
  }
  return best;
}

function point(image) {
  if (image === view.pointed) return;
  view.pointed = image;
  canvas.style.cursor = image >= 0 ? "pointer" : "grab";
  hover.hidden = image < 0;
  if (image >= 0) {
    hover.replaceChildren(picture(image, { "aria-hidden": "true" }), make("span", {}, sentenceCase(describe(image, view.stage))));
    const left = Math.min(Math.max(screenX(image) + 14, 4), view.side - hover.offsetWidth - 4);
    const above = screenY(image) - hover.offsetHeight - 12;
    hover.style.transform = `translate(${left}px, ${above > 4 ? above : screenY(image) + 16}px)`;
  }
  draw();
}

function zoomBy(factor, x = 0.5, y = 0.5) {
  const zoom = Math.min(Math.max(view.zoom * factor, 1), 24);
  const reach = view.side / (view.side - 2 * MARGIN);
  view.x += (x - 0.5) * reach * (1 / view.zoom - 1 / zoom);
  view.y += (y - 0.5) * reach * (1 / view.zoom - 1 / zoom);
  view.zoom = zoom;
  if (zoom === 1) [view.x, view.y] = [0.5, 0.5];
  point(NONE);
  draw();
}

// The image that an arrow key leads to: near, and in that direction.
function stepFrom(image, dx, dy) {
  let [best, least] = [image, Infinity];
  for (const other of view.shown) {
    const [x, y] = [images.x[other] - images.x[image], images.y[other] - images.y[image]];
    const along = x * dx + y * dy;
    const across = Math.abs(x * dy) + Math.abs(y * dx);
    if (other !== image && along > 0 && along + 2 * across < least) [best, least] = [other, along + 2 * across];
  }
  return best;
}

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
canvas.addEventListener("keydown", (event) => {
  if (ARROWS[event.key]) {
    const start = view.chosen >= 0 ? stepFrom(view.chosen, ...ARROWS[event.key]) : (view.shown[0] ?? NONE);
    choose(start, { center: true });
  } else if (event.key === "+" || event.key === "=") zoomBy(1.5);
  else if (event.key === "-") zoomBy(1 / 1.5);
  else if (event.key === "0") zoomBy(1 / 100);
  else if (event.key === "Escape") choose(NONE);
  else if (event.key === "Enter" && view.chosen >= 0) {
    const entry = entryOf(answersAt(view.stage).group[view.chosen], images.truth[view.chosen]);
    if (entry >= 0) location.hash = `#category-${entry}`;
  } else return;
  event.preventDefault();
});

let drag = null;
canvas.addEventListener("pointerdown", (event) => { drag = { x: event.clientX, y: event.clientY, moved: false }; });
canvas.addEventListener("pointermove", (event) => {
  if (drag && event.buttons) {
    const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
    if (!drag.moved && Math.hypot(dx, dy) < 5) return;
    if (!drag.moved) canvas.setPointerCapture(event.pointerId);
    const scale = view.zoom * (view.side - 2 * MARGIN);
    if (view.zoom > 1) [view.x, view.y] = [view.x - dx / scale, view.y - dy / scale];
    drag = { x: event.clientX, y: event.clientY, moved: true };
    draw();
  } else point(at(event));
});
canvas.addEventListener("pointerup", (event) => {
  if (drag && !drag.moved) choose(at(event));
  drag = null;
});
canvas.addEventListener("pointerleave", () => point(NONE));
canvas.addEventListener("wheel", (event) => {
  if (!event.ctrlKey && view.zoom === 1 && event.deltaY > 0) return; // let the page go on
  event.preventDefault();
  const box = canvas.getBoundingClientRect();
  zoomBy(event.deltaY < 0 ? 1.25 : 0.8, (event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height);
}, { passive: false });
for (const button of document.querySelectorAll("[data-zoom]"))
  button.addEventListener("click", () => zoomBy(Number(button.dataset.zoom)));

function resetFilters() {
  stop();
  controls.reset();
  slider.value = lastStage;
  Object.assign(view, { stage: lastStage, only: null, zoom: 1, x: 0.5, y: 0.5 });
  update();
}

const play = document.getElementById("play");
let playing = null;
function stop() {
  clearInterval(playing);
  playing = null;
  if (play) play.textContent = "Play";
}
function toStage(stage) {
  view.stage = stage;
  slider.value = stage;
  update();
}
play?.addEventListener("click", () => {
  if (playing !== null) return stop();
  toStage(view.stage === lastStage ? 0 : view.stage + 1);
  play.textContent = "Stop";
  playing = setInterval(() => (view.stage < lastStage ? toStage(view.stage + 1) : stop()), isCalm.matches ? 2500 : 1400);
});
slider.addEventListener("input", () => { stop(); toStage(Number(slider.value)); });
controls.addEventListener("input", (event) => { if (event.target !== slider) update(); });
controls.addEventListener("submit", (event) => event.preventDefault());
document.getElementById("show-all").addEventListener("click", resetFilters);
isDark.addEventListener("change", update);
controls.reset();
slider.value = lastStage;
new ResizeObserver(resize).observe(canvas);
update();
