// The page of a comparison: curves of the rows that are picked, and images that one row has right and another wrong.

const data = JSON.parse(document.getElementById("comparison").textContent);
const SVG = "http://www.w3.org/2000/svg";

function draw(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// Curves ------------------------------------------------------------------------------------------------------------

const group = document.getElementById("group");
const picked = document.getElementById("picked");
const chart = document.getElementById("chart");
const SIZE = { width: 760, height: 330, left: 40, right: 190, top: 16, bottom: 34 };
const DASHES = ["", "7 4", "2 4"];

const colorOf = (row) => `var(--stage-${row % 6})`;

function pushedApart(places, gap) {
  const order = places.map((_, at) => at).sort((a, b) => places[a] - places[b]);
  const moved = places.slice();
  for (let round = 0; round < 40; round++)
    for (let i = 1; i < order.length; i++) {
      const missing = gap - (moved[order[i]] - moved[order[i - 1]]);
      if (missing > 0.01) {
        moved[order[i]] += missing / 2;
        moved[order[i - 1]] -= missing / 2;
      }
    }
  return moved;
}

function drawCurves() {
  const chosen = [...picked.querySelectorAll("input:checked")].map((box) => Number(box.value));
  const lines = chosen
    .map((row) => ({ row, points: Object.entries(data.curves[row][group.value] ?? {}).map(([stage, value]) => [Number(stage), value]) }))
    .filter((line) => line.points.length);
  if (!lines.length) {
    chart.replaceChildren(make("p", { class: "note" }, "No picked row has these scores at two stages or more."));
    return;
  }
  const all = lines.flatMap((line) => line.points);
  const [first, last] = [Math.min(...all.map(([stage]) => stage)), Math.max(...all.map(([stage]) => stage))];
  const low = Math.max(0, 10 * Math.floor(Math.min(...all.map(([, value]) => value)) / 10));
  const high = Math.min(100, Math.max(low + 10, 10 * Math.ceil(Math.max(...all.map(([, value]) => value)) / 10)));
  const x = (stage) => SIZE.left + 10 + ((SIZE.width - SIZE.left - SIZE.right - 20) * (stage - first)) / (last - first);
  const y = (value) => SIZE.height - SIZE.bottom - ((SIZE.height - SIZE.top - SIZE.bottom) * (value - low)) / (high - low);
  const words = lines.map(({ row, points }) =>
    `${data.rows[row].name}: ${points.map(([stage, value]) => `stage ${stage} ${value.toFixed(1)}%`).join(", ")}`).join("; ");
  const svg = draw("svg", { class: "chart", viewBox: `0 0 ${SIZE.width} ${SIZE.height}`, role: "img", "aria-label": `${group.value}. ${words}` });
  for (let value = low; value <= high; value += high - low > 50 ? 20 : 10) {
    svg.append(draw("line", { class: "grid", x1: SIZE.left, x2: SIZE.width - SIZE.right, y1: y(value), y2: y(value) }));
    svg.append(draw("text", { class: "tick", x: SIZE.left - 7, y: y(value) + 4, "text-anchor": "end" }, String(value)));
  }
  for (let stage = first; stage <= last; stage++)
    svg.append(draw("text", { class: "tick", x: x(stage), y: SIZE.height - 12, "text-anchor": "middle" }, `stage ${stage}`));
  const labels = pushedApart(lines.map(({ points }) => y(points[points.length - 1][1])), 16);
  lines.forEach(({ row, points }, at) => {
    const dash = data.rows[row].is_bound ? "2 4" : DASHES[Math.floor(row / 6) % DASHES.length];
    const line = draw("g", { style: `color: ${colorOf(row)}` });
    line.append(draw("path", { d: `M${points.map(([stage, value]) => `${x(stage)},${y(value)}`).join(" L")}`, "stroke-dasharray": dash }));
    for (const [stage, value] of points)
      line.append(draw("circle", { cx: x(stage), cy: y(value), r: 4 }, draw("title", {}, `${data.rows[row].name}, stage ${stage}: ${value.toFixed(1)}%`)));
    const end = points[points.length - 1];
    line.append(draw("text", { class: "label", x: x(end[0]) + 10, y: labels[at] + 4 }, `${data.rows[row].name} ${end[1].toFixed(1)}`));
    svg.append(line);
  });
  chart.replaceChildren(svg);
}

if (group) {
  data.rows.forEach((row, at) => {
    const box = make("input", { type: "checkbox", value: at, checked: at < 6 });
    picked.append(make("label", {}, box, row.name));
  });
  picked.addEventListener("change", drawCurves);
  group.addEventListener("change", drawCurves);
  drawCurves();
}

// Pictures ----------------------------------------------------------------------------------------------------------

const pictures = data.pictures;
const FEW = 14;

const nameOf = (category) => pictures.categories[category] ?? "no category";

// other: the row that has it wrong
function tile(image, other) {
  const sheet = Math.floor(image / pictures.per_sheet);
  const label = `${nameOf(pictures.category[image])}, by ${other.name} taken for ${nameOf(other.said[image])}; ${pictures.ids[image]}`;
  return makeTile({
    sheet, place: image % pictures.per_sheet, columns: pictures.columns, rows: pictures.sheet_rows[sheet], label, title: label,
  });
}

// What the row that is wrong takes images for, the most frequent first.
function mistakes(list, other) {
  const counts = new Map();
  for (const image of list) counts.set(other.said[image], (counts.get(other.said[image]) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]).slice(0, 3).map(([category, n]) => `${nameOf(category)} (${n})`).join(", ");
}

function pictureList(list, other) {
  const grid = make("ul", { class: "pictures" });
  const show = (images) => grid.append(...images.map((image) => make("li", {}, tile(image, other))));
  show(list.slice(0, FEW));
  if (list.length <= FEW) return grid;
  const more = make("button", { type: "button", class: "quiet", onclick: () => {
    show(list.slice(FEW));
    more.remove();
  } }, `Show ${list.length - FEW} more`);
  return make("div", {}, grid, more);
}

function showDifference(first, second) {
  const [one, other] = [pictures.rows[first.value], pictures.rows[second.value]];
  const wrongThere = new Set(other.right);
  const wins = one.right.filter((image) => !wrongThere.has(image));
  const rightHere = new Set(one.right);
  const nLost = other.right.filter((image) => !rightHere.has(image)).length;
  document.getElementById("difference").textContent =
    `Of ${pictures.ids.length.toLocaleString("en")} images, ${wins.length.toLocaleString("en")} are right with ${one.name} and wrong with ${other.name}; ` +
    `the other way round ${nLost.toLocaleString("en")}.`;
  const byCategory = new Map();
  for (const image of wins) {
    const category = pictures.category[image];
    byCategory.set(category, [...(byCategory.get(category) ?? []), image]);
  }
  const isFound = (row, category) => row.found.includes(category);
  document.getElementById("found-list").replaceChildren(...[...byCategory].sort((a, b) => b[1].length - a[1].length).flatMap(([category, list]) => {
    const notes = [`${list.length} ${list.length === 1 ? "image" : "images"}`];
    if (pictures.is_new[category] && isFound(one, category) && !isFound(other, category))
      notes.push(`a new category that ${one.name} found and ${other.name} missed`);
    else if (pictures.is_new[category]) notes.push("a new category");
    notes.push(`by ${other.name} taken for ${mistakes(list, other)}`);
    return [make("h3", {}, nameOf(category), " ", make("small", {}, notes.join(", "))), pictureList(list, other)];
  }));
}

if (pictures) {
  const [first, second] = [document.getElementById("first"), document.getElementById("second")];
  pictures.rows.forEach((row, at) => {
    first.append(make("option", { value: at }, row.name));
    second.append(make("option", { value: at }, row.name));
  });
  const order = pictures.rows.map((_, at) => at)
    .filter((at) => !data.rows.find((row) => row.name === pictures.rows[at].name)?.is_bound)
    .sort((a, b) => pictures.rows[b].right.length - pictures.rows[a].right.length);
  first.value = String(order[0] ?? 0);
  second.value = String(order[1] ?? (order[0] === 0 ? 1 : 0));
  const show = () => showDifference(first, second);
  first.addEventListener("change", show);
  second.addEventListener("change", show);
  document.getElementById("swap").addEventListener("click", () => {
    [first.value, second.value] = [second.value, first.value];
    show();
  });
  show();
}
