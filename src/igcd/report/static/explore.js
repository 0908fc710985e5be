// The data of the page, what is said of each image at a stage, and pictures of images.

const data = JSON.parse(document.getElementById("exploration").textContent);
const images = data.images;
const nImages = images.id.length;
const lastStage = data.stages.length - 1;
const NONE = -1;
const NOT_YET = -2;
const LABELED = data.splits.indexOf("labeled");
const isDark = matchMedia("(prefers-color-scheme: dark)");
const isCalm = matchMedia("(prefers-reduced-motion: reduce)");

const answersOf = new Map(data.answers.map((answers) => [answers.stage, answers]));
const knownByStage = [];

// For each image the group it was last said to be in by a stage, and the stage that said so.
function answersAt(stage) {
  if (!knownByStage[stage]) {
    const before = stage > 0 ? answersAt(stage - 1) : null;
    const group = before ? before.group.slice() : new Int32Array(nImages).fill(NOT_YET);
    const since = before ? before.since.slice() : new Int32Array(nImages).fill(NONE);
    for (let i = 0; i < nImages; i++) if (group[i] === NOT_YET && images.stage[i] <= stage) group[i] = NONE;
    const said = answersOf.get(stage);
    said?.images.forEach((image, at) => {
      group[image] = said.groups[at];
      since[image] = stage;
    });
    knownByStage[stage] = { group, since };
  }
  return knownByStage[stage];
}

// The position in `truths` that a group stands for at a stage.
function standsFor(group, stage) {
  return group >= 0 && answersOf.has(stage) ? answersOf.get(stage).stands_for[group] : NONE;
}

// "right", "wrong", "labeled", or "" where there is nothing to compare with.
function verdictOf(image, stage) {
  const { group, since } = answersAt(stage);
  if (images.split[image] === LABELED) return "labeled";
  if (!data.is_judged || images.truth[image] === NONE || since[image] === NONE) return "";
  return standsFor(group[image], since[image]) === images.truth[image] ? "right" : "wrong";
}

function isNew(group, stage) {
  if (group < 0) return false;
  const { labeled, found } = data.groups[group];
  return labeled === null ? found !== null : labeled > stage;
}

function nameOf(group) {
  if (group < 0) return data.is_judged ? "no answer" : "unsure";
  return data.groups[group].name;
}

// The truth behind a group that was found, where its own name does not say it.
function truthBehind(group, stage) {
  const truth = standsFor(group, stage);
  return truth >= 0 && data.truths[truth] !== nameOf(group) ? data.truths[truth] : null;
}

function entryOf(group, truth) {
  let found = data.entries.findIndex((entry) => group >= 0 && entry.group === group);
  if (found < 0) found = data.entries.findIndex((entry) => truth >= 0 && entry.truth === truth);
  return found;
}

function colorOf(group, stage) {
  if (group < 0) return isDark.matches ? "#8b949c" : "#70777e";
  const hue = (group * 137.508 + 20) % 360;
  const [saturation, lightness] = isNew(group, stage) ? [78, isDark.matches ? 66 : 42] : [26, isDark.matches ? 62 : 50];
  return `hsl(${hue.toFixed(0)} ${saturation}% ${lightness}%)`;
}

function plural(count, one, many = `${one}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

const sentenceCase = (text) => text.charAt(0).toUpperCase() + text.slice(1);

// What is known of an image, in words.
function describe(image, stage = lastStage) {
  const { group } = answersAt(stage);
  const truth = images.truth[image] >= 0 ? data.truths[images.truth[image]] : null;
  const said = nameOf(group[image]);
  const verdict = verdictOf(image, stage);
  if (verdict === "right") return `${truth}, recognized`;
  if (verdict === "wrong") {
    const meant = truthBehind(group[image], answersAt(stage).since[image]);
    return `${truth}, taken for ${meant === null ? said : `${said} (${meant})`}`;
  }
  if (verdict === "labeled") return `${truth ?? said}, labeled`;
  return truth === null ? said : `${truth}, ${data.splits[images.split[image]]}`;
}

function picture(image, attributes = {}) {
  const sheet = images.sheet[image];
  return makeTile({
    sheet, place: images.tile[image], columns: data.columns, rows: data.sheet_rows[sheet], label: describe(image), ...attributes,
  });
}
