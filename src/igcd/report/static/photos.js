// Pictures in rows, a few at first and more when asked for; and the window that shows those of a cell.

const FEW = 48;

function pictureList(list, stage = lastStage) {
  const grid = make("ul", { class: "pictures" });
  const more = make("button", { type: "button", class: "quiet" });
  let shown = 0;
  function showMore(n) {
    for (const image of list.slice(shown, shown + n)) {
      const words = `${describe(image, stage)}; ${images.id[image]}`;
      const button = make("button", { type: "button", class: "picture", title: words, "aria-label": `${words}. Show it on the map` });
      button.append(picture(image, { "aria-hidden": "true" }));
      button.addEventListener("click", () => showOnMap(image));
      grid.append(make("li", {}, button));
    }
    shown = Math.min(shown + n, list.length);
    more.textContent = `Show ${Math.min(list.length - shown, 4 * FEW).toLocaleString("en")} more`;
    more.hidden = shown >= list.length;
  }
  more.addEventListener("click", () => {
    const first = shown;
    showMore(4 * FEW);
    grid.children[first]?.querySelector("button").focus();
  });
  showMore(FEW);
  return make("div", {}, grid, more);
}

const dialog = document.getElementById("photos");

function openPhotos(title, list, nInAll, stage) {
  dialog.querySelector("h2").textContent = title;
  const what = plural(nInAll, data.what);
  dialog.querySelector(".count").textContent =
    list.length === nInAll ? what : `${what}; ${list.length === 0 ? "none is" : `${list.length.toLocaleString("en")} ${list.length === 1 ? "is" : "are"}`} among those that have a picture here`;
  dialog.querySelector(".body").replaceChildren(pictureList(list, stage));
  if (!dialog.open) dialog.showModal();
  dialog.querySelector(".body").scrollTop = 0;
}

function showOnMap(image) {
  if (dialog.open) dialog.close();
  if (location.hash.startsWith("#category-")) location.hash = "#explore";
  requestAnimationFrame(() => {
    resetFilters();
    choose(image, { center: true });
    document.getElementById("explore").scrollIntoView({ behavior: "instant" });
    document.getElementById("map").focus({ preventScroll: true });
  });
}

function inCell(cell, stage) {
  if (cell.dataset.images !== undefined) return cell.dataset.images.split(" ").filter(Boolean).map(Number);
  const { group, since } = answersAt(stage);
  const split = data.splits.indexOf(cell.dataset.split);
  const known = new Set(data.groups.filter((one) => one.labeled !== null && one.labeled <= stage).map((one) => one.name));
  const isWanted = (image) => {
    if (cell.dataset.truth !== undefined)
      return images.truth[image] === Number(cell.dataset.truth) && group[image] === Number(cell.dataset.group);
    const isKnown = known.has(data.truths[images.truth[image]]);
    return isKnown === (cell.dataset.is === "known") && isNew(group[image], stage) === (cell.dataset.said === "novel") && group[image] >= 0;
  };
  const found = [];
  for (let i = 0; i < nImages; i++) if (since[i] === stage && images.split[i] === split && isWanted(i)) found.push(i);
  return found;
}

for (const cell of document.querySelectorAll("td[data-title]")) {
  const n = Number(cell.dataset.n);
  const button = make("button", { type: "button", class: "cell", "aria-label": `${cell.dataset.title}: ${plural(n, data.what)}. Show them` });
  button.append(...cell.childNodes);
  cell.append(button);
  button.addEventListener("click", () => {
    const stage = Number(cell.dataset.stage ?? lastStage);
    openPhotos(cell.dataset.title, inCell(cell, stage), n, stage);
  });
}
dialog.querySelector(".close").addEventListener("click", () => dialog.close());
dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });

const stageOfMatrix = document.getElementById("matrix-stage");
function showMatrix() {
  for (const matrix of document.querySelectorAll("[data-matrix]")) matrix.hidden = matrix.dataset.matrix !== stageOfMatrix.value;
}
if (stageOfMatrix) {
  stageOfMatrix.value = String(lastStage);
  if (!stageOfMatrix.value) stageOfMatrix.selectedIndex = stageOfMatrix.options.length - 1;
  stageOfMatrix.addEventListener("change", showMatrix);
  showMatrix();
}
