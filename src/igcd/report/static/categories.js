// A page per category: #category-3 shows that of the third entry and nothing else.

const categoryPage = document.getElementById("category");
const KINDS = { known: "known", new: "new", missed: "new, missed", extra: "stands for no category", unsure: "unsure" };
let scrolledTo = 0;

function groupedBy(list, keyOf) {
  const groups = new Map();
  for (const image of list) {
    const key = keyOf(image);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(image);
  }
  return [...groups].sort((a, b) => b[1].length - a[1].length);
}

// What there is to see of a category at the last stage: headings, each with images.
function partsOf(entry) {
  const { group } = answersAt(lastStage);
  const own = [], inside = [];
  for (let i = 0; i < nImages; i++) {
    if (entry.truth >= 0 && images.truth[i] === entry.truth) own.push(i);
    else if (entry.group >= 0 && group[i] === entry.group) inside.push(i);
    else if (entry.kind === "unsure" && group[i] === NONE) inside.push(i);
  }
  if (!data.is_judged) {
    return groupedBy([...own, ...inside], (image) => images.split[image])
      .sort((a, b) => a[0] - b[0])
      .map(([split, list]) => [sentenceCase(data.splits[split]), list]);
  }
  const byVerdict = (verdict) => own.filter((image) => verdictOf(image, lastStage) === verdict);
  const parts = [["Recognized", byVerdict("right")]];
  for (const [other, list] of groupedBy(byVerdict("wrong"), (image) => group[image])) {
    const meant = standsFor(other, answersAt(lastStage).since[list[0]]);
    parts.push([`Taken for ${meant >= 0 ? data.truths[meant] : nameOf(other)}`, list]);
  }
  for (const [truth, list] of groupedBy(inside, (image) => images.truth[image]))
    parts.push([`${truth >= 0 ? sentenceCase(data.truths[truth]) : "Others"} taken for it`, list]);
  parts.push(["Labeled", byVerdict("labeled")]);
  return parts.filter(([, list]) => list.length);
}

function showCategory(number) {
  const entry = data.entries[number];
  const parts = partsOf(entry);
  const step = (to, words) => (data.entries[to] ? make("a", { href: `#category-${to}` }, `${words}: ${data.entries[to].name}`) : null);
  const onMap = make("button", { type: "button", class: "quiet", onclick: () => {
    location.hash = "#explore";
    requestAnimationFrame(() => {
      resetFilters();
      view.only = entry.kind === "unsure" ? NONE : entry.group;
      update();
      document.getElementById("explore").scrollIntoView({ behavior: "instant" });
    });
  } }, "Show it on the map");
  categoryPage.replaceChildren(
    make("p", {}, make("a", { href: "#categories" }, "← All categories")),
    make("h1", { tabindex: "-1" }, entry.name, " ", make("span", { class: `tag ${entry.kind === "known" ? "" : "new"}` }, KINDS[entry.kind])),
    make("dl", { class: "facts" }, ...entry.facts.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value)))),
    entry.group >= 0 || entry.kind === "unsure" ? make("p", {}, onMap) : make("p", { class: "note" }, "No cluster stands for it."),
    ...parts.flatMap(([title, list]) => [make("h2", {}, `${title}: ${plural(list.length, "picture")}`), pictureList(list)]),
    parts.length ? "" : make("p", {}, `No ${data.what} of it has a picture here.`),
    make("nav", { class: "steps", "aria-label": "Other categories" }, step(number - 1, "Before"), step(number + 1, "Next")));
  categoryPage.hidden = false;
  document.body.classList.add("on-category");
  categoryPage.querySelector("h1").focus({ preventScroll: true });
  window.scrollTo({ top: 0, behavior: "instant" });
}

function route() {
  const wanted = /^#category-(\d+)$/.exec(location.hash);
  const wasOpen = document.body.classList.contains("on-category");
  if (wanted && data.entries[Number(wanted[1])]) {
    if (!wasOpen) scrolledTo = window.scrollY;
    showCategory(Number(wanted[1]));
    return;
  }
  document.body.classList.remove("on-category");
  categoryPage.hidden = true;
  if (wasOpen) {
    resize();
    const target = location.hash.length > 1 ? document.getElementById(location.hash.slice(1)) : null;
    if (target) target.scrollIntoView({ behavior: "instant" });
    else window.scrollTo({ top: scrolledTo, behavior: "instant" });
  }
}
window.addEventListener("hashchange", route);
route();
