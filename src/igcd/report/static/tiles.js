// A picture out of a sheet: which sheet, and its place there, row by row.

function makeTile({ sheet, place, columns, rows, label, ...attributes }) {
  const [column, row] = [place % columns, Math.floor(place / columns)];
  const tile = make("span", { role: "img", "aria-label": label, ...attributes });
  tile.classList.add("tile", `sheet-${sheet}`);
  tile.style.backgroundPosition = `${(100 * column) / (columns - 1)}% ${rows > 1 ? (100 * row) / (rows - 1) : 0}%`;
  return tile;
}
