// Draws very many points without a graphics card: small stamps, pixel by pixel. A tenth of the time that WebGL takes
// where it is only imitated by the processor.

// What a point of a kind covers of each pixel of a square, and which of them are its ring. Kinds are those of points.js.
export function stampOf(kind, size) {
  const side = Math.max(2, size * [0.75, 1.25, 1, 1][kind]);
  const n = Math.ceil(side) + 1;
  const [cover, isRing] = [new Float32Array(n * n), new Uint8Array(n * n)];
  for (let row = 0; row < n; row++) {
    for (let column = 0; column < n; column++) {
      const [dx, dy] = [column - (n - 1) / 2, row - (n - 1) / 2];
      const r = Math.hypot(dx, dy) / (side / 2);
      const soft = 2 / side;
      let covered = Math.min(1, Math.max(0, (1 - r) / soft + 0.5));
      if (kind === 0) covered = Math.max(Math.abs(dx), Math.abs(dy)) <= side / 2 ? 0.75 : 0;
      if (kind === 3) covered *= Math.min(1, Math.max(0, (r - 0.55) / soft + 1));
      cover[row * n + column] = covered;
      isRing[row * n + column] = kind === 1 && r > 0.68 ? 1 : 0;
    }
  }
  return { n, cover, isRing };
}

// places: as places.js reads them; rgbOf(category): three numbers up to 255; ring: such a color. Sizes are in pixels.
export function drawPoints(pixels, places, { left, top, across, down, size, rgbOf, ring }) {
  const { data, width, height } = pixels;
  const whole = new Uint32Array(data.buffer); // red is the first byte: browsers run on little-endian machines
  const stamps = [0, 1, 2, 3].map((kind) => stampOf(kind, size));
  const { x, y, categories, kinds, shown, length } = places;
  for (let at = 0; at < length; at++) {
    if (!shown[at]) continue;
    const { n, cover, isRing } = stamps[kinds[at]];
    const column = Math.round(left + x[at] * across - n / 2);
    const row = Math.round(top + y[at] * down - n / 2);
    if (column + n <= 0 || row + n <= 0 || column >= width || row >= height) continue;
    const own = rgbOf(categories[at]);
    for (let dy = Math.max(0, -row); dy < n && row + dy < height; dy++) {
      for (let dx = Math.max(0, -column); dx < n && column + dx < width; dx++) {
        const share = cover[dy * n + dx];
        if (!share) continue;
        const color = isRing[dy * n + dx] ? ring : own;
        const pixel = (row + dy) * width + column + dx;
        if (share === 1) {
          whole[pixel] = 0xff000000 | (color[2] << 16) | (color[1] << 8) | color[0];
          continue;
        }
        const to = 4 * pixel;
        const under = (data[to + 3] / 255) * (1 - share); // what is still seen of the points below
        const alpha = share + under;
        data[to] = (color[0] * share + data[to] * under) / alpha;
        data[to + 1] = (color[1] * share + data[to + 1] * under) / alpha;
        data[to + 2] = (color[2] * share + data[to + 2] * under) / alpha;
        data[to + 3] = 255 * alpha;
      }
    }
  }
}
