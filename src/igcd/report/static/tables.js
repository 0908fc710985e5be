// Elements by name and attributes, and tables that can be sorted and saved.

document.documentElement.classList.add("scripted");

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== null && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

const plainText = (cell) => (cell ? (cell.dataset.text ?? cell.textContent).replace(/\s+/g, " ").trim() : "");

function sortKey(cell) {
  const text = cell?.dataset.key ?? plainText(cell);
  const number = Number.parseFloat(text.replaceAll(",", "").replace("−", "-"));
  return { text, number };
}

function compareCells(first, second) {
  const [a, b] = [sortKey(first), sortKey(second)];
  const [aIsNumber, bIsNumber] = [!Number.isNaN(a.number), !Number.isNaN(b.number)];
  if (aIsNumber && bIsNumber && a.number !== b.number) return a.number - b.number;
  if (aIsNumber !== bIsNumber) return aIsNumber ? -1 : 1;
  return a.text.localeCompare(b.text);
}

function makeSortable(table) {
  const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
  const body = table.tBodies[0];
  const rows = [...body.rows];
  heads.forEach((head, column) => {
    if (head.tagName !== "TH" || !plainText(head) || head.hasAttribute("data-drawing")) return;
    const button = make("button", { type: "button", class: "sort" });
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const before = head.getAttribute("aria-sort");
      const next = before === "descending" ? "ascending" : before === "ascending" ? null : "descending";
      for (const other of heads) other.removeAttribute("aria-sort");
      if (next) head.setAttribute("aria-sort", next);
      const sign = next === "descending" ? -1 : 1;
      const isMissing = (row) => ["", "–"].includes(plainText(row.cells[column]));
      const sorted = next === null ? rows : [...rows].sort((first, second) => {
        if (isMissing(first) !== isMissing(second)) return isMissing(first) ? 1 : -1;
        return sign * compareCells(first.cells[column], second.cells[column]);
      });
      body.append(...sorted);
    });
  });
}

// The heads of a column, of all rows of the head, from left to right.
function columnHeads(table) {
  const rows = [...table.tHead.rows].map((row) =>
    [...row.cells].flatMap((cell) => Array(cell.colSpan).fill(plainText(cell))));
  return rows[rows.length - 1].map((_, column) => rows.map((row) => row[column] ?? "").filter(Boolean).join(" "));
}

function asCsv(table) {
  const last = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
  const isText = (_, column) => !last[column]?.hasAttribute("data-drawing");
  const lines = [columnHeads(table).filter(isText)];
  for (const row of table.tBodies[0].rows) lines.push([...row.cells].map(plainText).filter(isText));
  // A spreadsheet takes a text that begins like a formula for one, unless it is a number.
  const safe = (text) => (/^[=+@\t\r-]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text);
  const quote = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  return lines.map((line) => line.map((text) => quote(safe(text))).join(",")).join("\r\n") + "\r\n";
}

function saveCsv(table) {
  const file = new Blob([asCsv(table)], { type: "text/csv" });
  const link = make("a", { href: URL.createObjectURL(file), download: `${table.dataset.name}.csv` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

for (const table of document.querySelectorAll("table[data-name]")) {
  if (!table.hasAttribute("data-unsorted")) makeSortable(table);
  const button = make("button", { type: "button", class: "quiet", onclick: () => saveCsv(table) }, "Download as CSV");
  button.setAttribute("aria-label", `Download the table ${table.dataset.name.replaceAll("_", " ")} as CSV`);
  (table.closest(".scroll") ?? table).after(make("p", { class: "under-table" }, button));
}
