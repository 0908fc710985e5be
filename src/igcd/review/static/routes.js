// Addresses of views, and how long it takes to open one.

const KINDS = ["new", "look", "known", "checks", "find", "map"];

export function routeOf(hash) {
  const [, kind, id] = hash.split("/");
  if (["category", "look"].includes(kind) && /^\d+$/.test(id)) return { kind, id: Number(id) };
  if (kind === "gallery" && /^[a-z]+$/.test(id)) return { kind, id };
  if (kind === "parts" && /^\d+$/.test(id)) return { kind, id: Number(id), n: 2 };
  return KINDS.includes(kind) ? { kind } : null;
}

export function hashOf({ kind, id }) {
  return id === undefined ? `#/${kind}` : `#/${kind}/${id}`;
}

// The category a decision was about, also when it took another one back.
export function subjectOf(payload) {
  if (payload.undone) return subjectOf(payload.undone);
  return payload.category ?? payload.from?.[0] ?? null;
}

// Two figures for each view that is opened: until it is painted, and until all pictures in sight are there.
export function measure(name, started, grid) {
  requestAnimationFrame(() =>
    setTimeout(async () => {
      performance.measure(name, { start: started, end: performance.now() });
      const images = grid ? [...grid.tiles.values()].map((tile) => tile.firstChild) : [];
      await Promise.allSettled(images.map((image) => image.decode()));
      performance.measure(`${name}-pictures`, { start: started, end: performance.now() });
    }),
  );
}
