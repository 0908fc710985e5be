// The photos of the map as arrays, an entry each, as the server sends them (map_bytes in routes/answers.py).

export class Places {
  constructor({ ids, x, y, categories, kinds, isSettled }) {
    Object.assign(this, { ids, x, y, categories, kinds, isSettled });
    this.shown = new Uint8Array(ids.length).fill(1);
  }

  get length() {
    return this.ids.length;
  }

  // The middle of each category and how many photos it has, the largest first.
  middles() {
    const sums = new Map();
    for (let at = 0; at < this.length; at++) {
      const category = this.categories[at];
      if (!category) continue;
      let sum = sums.get(category);
      if (!sum) sums.set(category, (sum = { category, x: 0, y: 0, n: 0 }));
      sum.x += this.x[at];
      sum.y += this.y[at];
      sum.n += 1;
    }
    return [...sums.values()].map((sum) => ({ ...sum, x: sum.x / sum.n, y: sum.y / sum.n })).sort((a, b) => b.n - a.n);
  }

  // The smallest frame around all photos.
  bounds() {
    if (!this.length) return { left: 0, right: 1, top: 0, bottom: 1 };
    const frame = { left: Infinity, right: -Infinity, top: Infinity, bottom: -Infinity };
    for (let at = 0; at < this.length; at++) {
      frame.left = Math.min(frame.left, this.x[at]);
      frame.right = Math.max(frame.right, this.x[at]);
      frame.top = Math.min(frame.top, this.y[at]);
      frame.bottom = Math.max(frame.bottom, this.y[at]);
    }
    return frame;
  }

  // Photo id -> entry, made when it is first asked for.
  get atOf() {
    this.entries ??= new Map(Array.from(this.ids, (id, at) => [id, at]));
    return this.entries;
  }
}

// The bytes of the answer: the length of a head, the head as JSON, then one array after the other.
export function readPlaces(bytes) {
  const length = new DataView(bytes).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 4, length)));
  const n = head.n_photos;
  let start = 4 + length;
  const take = (Kind) => {
    const values = new Kind(bytes, start, n);
    start += n * Kind.BYTES_PER_ELEMENT;
    return values;
  };
  const [ids, x, y, categories] = [take(Float64Array), take(Float32Array), take(Float32Array), take(Uint32Array)];
  const [kinds, isSettled] = [take(Uint8Array), take(Uint8Array)];
  return { revision: head.revision, versions: head.versions, photo_ids: ids, places: new Places({ ids, x, y, categories, kinds, isSettled }) };
}
