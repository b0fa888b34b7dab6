// The list of trials: filtered and sorted by any column, only the rows in sight are in the page.
const ROW = 30;
const cellColumn = (at) => (row) => cellOf(row)[at];
const listColumns = [
  many && { name: "run", wide: 60, get: (row) => data.runs[cellOf(row)[0]].letter, pick: true },
  { name: "endpoint", wide: 130, get: cellColumn(1), pick: true },
  { name: "suite", wide: 90, get: cellColumn(2), pick: true },
  { name: "condition", wide: 100, get: cellColumn(3), pick: true },
  { name: "item", wide: 150, get: (row) => trials.item[row] },
  { name: "trial", wide: 56, get: (row) => trials.trial[row], numeric: true },
  trials.turn.some(known) && { name: "turn", wide: 56, get: (row) => trials.turn[row], numeric: true },
  { name: "status", wide: 100, get: statusOf, pick: true },
  { name: "right", wide: 78, get: (row) => ["wrong", "right"][trials.right[row]] || "", pick: true },
  { name: "answer", wide: 90, get: (row) => trials.answer[row] },
  { name: "reference", wide: 100, get: (row) => trials.reference[row] },
  { name: "rule", wide: 130, get: (row) => trials.words[trials.rule[row]] },
  ...data.latencies.map((name) => ({ name, title: name.replace(/_ms$/, "").replaceAll("_", " "), wide: 92, get: (row) => trials[name][row], numeric: true })),
  { name: "latency", title: "latency counts", wide: 104, get: (row) => (trials.valid[row] ? "yes" : "no"), pick: true },
  trials.judged.some(Boolean) && { name: "judged", wide: 180, get: (row) => trials.judged[row] },
  { name: "reply", wide: 420, get: (row) => trials.reply[row] },
].filter(Boolean);

const state = { filters: {}, sort: "", down: false, open: -1, at: 0 };
let shownRows = [];

// `>500`, `<=300`, `200-400`, `=1`, `none`; else words that must be in it, in any case.
function test(column, wanted) {
  const text = wanted.trim();
  if (column.pick) return (value) => String(value) === wanted;
  if (column.numeric) {
    if (text === "none") return (value) => !known(value);
    const bound = text.match(/^(<=|>=|<|>|=)?\s*(-?[\d.]+)$/);
    const range = text.match(/^(-?[\d.]+)\s*(?:-|\.\.|to)\s*(-?[\d.]+)$/);
    if (range) return (value) => known(value) && value >= Number(range[1]) && value <= Number(range[2]);
    if (!bound) return () => true;
    const limit = Number(bound[2]);
    const acts = { "<": (v) => v < limit, "<=": (v) => v <= limit, ">": (v) => v > limit, ">=": (v) => v >= limit };
    const act = acts[bound[1]] || ((v) => v === limit);
    return (value) => known(value) && act(value);
  }
  const lower = text.toLowerCase();
  return (value) => String(value).toLowerCase().includes(lower);
}

function select() {
  const tests = listColumns.filter((column) => state.filters[column.name])
    .map((column) => [column.get, test(column, state.filters[column.name])]);
  shownRows = [];
  for (let row = 0; row < total; row += 1) {
    if (tests.every(([get, fits]) => fits(get(row)))) shownRows.push(row);
  }
  const column = listColumns.find((one) => one.name === state.sort);
  if (!column) return;
  const keys = new Map(shownRows.map((row) => [row, column.get(row)]));
  const sign = state.down ? -1 : 1;
  shownRows.sort((a, b) => {
    const [one, other] = [keys.get(a), keys.get(b)];
    if (!known(one) || !known(other)) return Number(!known(one)) - Number(!known(other)) || a - b;
    if (typeof one === "number") return sign * (one - other) || a - b;
    return sign * (one < other ? -1 : one > other ? 1 : 0) || a - b;
  });
}

// On paper only what identifies a trial and what came of it.
const PAPER = ["run", "endpoint", "condition", "item", "trial", "status", "right", "answer", "reference", "first_audible_ms", "reply"];
const list = el("div", { class: "card", id: "list", tabindex: "0", "aria-label": "Trials" });
const rowsBox = el("div", { class: "rows" });
const count = el("span", { id: "count" });
const screenGrid = listColumns.map((column) => column.wide + "px").join(" ");
const paperColumns = listColumns.filter((column) => PAPER.includes(column.name));
const paperGrid = paperColumns.map((column) => `minmax(0, ${Math.min(column.wide, 220)}fr)`).join(" ");

function listHead() {
  const head = el("div", { class: "row head" }, listColumns.map((column) => {
    const shown = column.title || column.name;
    const button = el("button", { type: "button", title: [meant(column.name), "Sort by " + shown].filter(Boolean).join(" "), "data-sort": column.name, onclick: () => {
      state.down = state.sort === column.name && !state.down;
      state.sort = column.name;
      refresh();
    } }, shown);
    const change = (event) => { state.filters[column.name] = event.target.value; list.scrollTop = 0; refresh(); };
    const filter = column.pick
      ? el("select", { "aria-label": "Only " + shown, "data-filter": column.name, onchange: change }, el("option", { value: "" }, "all"),
        distinct(allRows().map(column.get)).filter((value) => value !== "").sort().map((value) => el("option", { value }, String(value))))
      : el("input", { "aria-label": "Only " + shown, "data-filter": column.name, placeholder: column.numeric ? "> < a-b" : "has", oninput: change, spellcheck: "false" });
    return el("div", { class: column.numeric ? "n" : null, "data-column": column.name }, button, filter);
  }));
  head.style.gridTemplateColumns = screenGrid;
  return head;
}
const allRows = () => Array.from({ length: total }, (_, row) => row);

function shownCell(column, row) {
  const value = column.get(row);
  if (!known(value) || value === "") return "";
  if (column.numeric) return /_ms$/.test(column.name) ? whole(value) : plain(value);
  return String(value);
}

function fill(all) {
  const columns = all ? paperColumns : listColumns, grid = all ? paperGrid : screenGrid;
  const first = all ? 0 : Math.max(0, Math.floor(list.scrollTop / ROW) - 8);
  const last = all ? Math.min(shownRows.length, 500) : Math.min(shownRows.length, first + Math.ceil((list.clientHeight || 600) / ROW) + 20);
  rowsBox.style.height = (all ? last : shownRows.length) * ROW + "px";
  rowsBox.replaceChildren(...shownRows.slice(first, last).map((row, index) => {
    const line = el("div", { class: "row" + (first + index === state.at ? " at" : ""), "data-row": row, onclick: () => { state.at = first + index; openRow(row); } },
      columns.map((column) => el("div", { class: (column.numeric ? "n" : "")
        + (column.name === "right" ? (trials.right[row] === 1 ? " good" : trials.right[row] === 0 ? " bad" : "") : "")
        + (column.name === "status" && !["ok", "warm-up"].includes(statusOf(row)) ? " bad" : "") || null }, shownCell(column, row))));
    line.style.gridTemplateColumns = grid;
    line.style.top = (first + index) * ROW + "px";
    return line;
  }));
}

function refresh(quiet) {
  select();
  state.at = Math.max(0, Math.min(state.at, shownRows.length - 1));
  count.textContent = shownRows.length === total ? `${whole(total)} trials` : `${whole(shownRows.length)} of ${whole(total)} trials`;
  for (const button of list.querySelectorAll("[data-sort]")) {
    const name = button.getAttribute("data-sort");
    const column = listColumns.find((one) => one.name === name);
    button.textContent = (column.title || name) + (name === state.sort ? (state.down ? " ↓" : " ↑") : "");
  }
  for (const input of list.querySelectorAll("[data-filter]")) {
    const value = state.filters[input.getAttribute("data-filter")] || "";
    if (input.value !== value) input.value = value;
  }
  fill();
  if (!quiet) keepState();
}

function trialsPart() {
  list.append(listHead(), rowsBox);
  list.addEventListener("scroll", () => fill());
  const paper = (on) => {
    drawAll();
    const head = list.querySelector(".head");
    head.style.gridTemplateColumns = on ? paperGrid : screenGrid;
    for (const cell of head.children) cell.hidden = on && !PAPER.includes(cell.dataset.column);
    document.documentElement.dataset.theme = on ? "light" : state.theme;
    fill(on);
  };
  window.addEventListener("beforeprint", () => paper(true));
  window.addEventListener("afterprint", () => paper(false));
  const clear = el("button", { type: "button", onclick: () => { state.filters = {}; state.sort = ""; refresh(); } }, "Show all");
  return part("trials", "Trials", null,
    el("div", { class: "controls" }, count, clear, el("span", null, el("kbd", null, "j"), " ", el("kbd", null, "k"), " move, ",
      el("kbd", null, "Enter"), " opens, ", el("kbd", null, "Esc"), " closes. Numbers take >500, <300, 200-400 or none.")), list);
}

function moveTo(at) {
  if (!shownRows.length) return;
  state.at = Math.max(0, Math.min(shownRows.length - 1, at));
  const top = state.at * ROW;
  if (top < list.scrollTop || top > list.scrollTop + list.clientHeight - 4 * ROW) list.scrollTop = Math.max(0, top - 5 * ROW);
  fill();
}
