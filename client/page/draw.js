// Elements, figures as text, scales: everything that comes from outside goes in as text.
const data = JSON.parse(document.getElementById("data").textContent);
const many = data.runs.length > 1;
// Several runs are called A, B, … on the page; its head says which is which.
data.runs.forEach((run, number) => { run.letter = number < 26 ? String.fromCharCode(65 + number) : String(number + 1); });
const SVG = "http://www.w3.org/2000/svg";

function put(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) node.append(child);
  }
  return node;
}
const el = (tag, attributes, ...children) => put(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) => put(document.createElementNS(SVG, tag), attributes, children);
const label = (x, y, text, more) => svg("text", { x, y, ...more }, text);

const known = (value) => value !== null && value !== undefined;
const whole = (value) => Math.abs(value) < 1e15 ? String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, "\u2009") : value.toPrecision(3);
const plain = (value) => typeof value !== "number" ? cut(String(value), 40) : Math.abs(value) >= 1000 ? whole(value) : String(Number(value.toPrecision(3)));
const percent = (value) => (100 * value).toFixed(1) + "%";
const asMs = (value) => whole(value) + " ms";

// What a first-time reader may ask of a column's head; metrics have the words of their definitions.
const HELP = {
  "ok / planned": "Trials that ended with a reply, of all that were to be asked; what failed counts as wrong.",
  accuracy: "Right answers in what was spoken, of all questions with one right answer.",
  "clear answers": "parse_rate: share of the trials whose reply gave a clear answer; the others count as wrong.",
  "first packet p50, ms": "Median time from the end of the question to the first reply audio that arrived.",
  "first audible p50, ms": "Median time from the end of the question to the first sound that a listener hears.",
  "first text p50, ms": "Median time from the end of the question to the first text of the reply.",
  "reply p50, ms": "Median audible length of the reply.",
  p50: "Median: half of the trials took no longer.", p90: "Nine of ten trials took no longer.",
  "p90, ms": "Nine of ten trials began no later.", p95: "19 of 20 trials took no longer; needs 20 samples.", p99: "99 of 100 trials took no longer; needs 100 samples.",
  n: "How many trials, or items in a comparison, the figure stands on.",
  missing: "Trials without this time: no reply, or it did not happen.", invalid: "Trials that this machine made late itself; their times are left out.",
  "p (Holm)": "How likely so large a difference is by chance, corrected for the number of gates; below 0.05 it is taken as real.",
  ratio: "Mean of the new run over mean of the base.",
  rule: "How the answer was found in the reply. Before the colon: stated = announced (the answer is B); leading = at its head; alone = nothing else is in it; inside = in a sentence; predicate = behind a verb (it is Paris). After it: what was matched, such as a letter or the option's words.",
  reference: "The right answer.", answer: "The answer that was found in the reply; empty: none was clear.",
  right: "Whether the answer found is the right one.", latency: "Whether this trial's times count: no, where this machine was late itself.",
  trial: "Which time the item is asked; 0 and less warm up and are not counted.",
};
const meant = (name) => (Object.hasOwn(HELP, name) ? HELP[name] : Object.hasOwn(data.meanings, name) ? data.meanings[name].text : null);

function ranged(entry, shape) {
  if (!entry || !known(entry.value)) return el("span", { class: "kind" }, "–");
  const ends = [entry.low, entry.high];
  if (ends.every((one) => !known(one))) return [shape(entry.value), el("span", { class: "range" })];
  const text = ends.map((one) => (known(one) ? shape(one).replace("%", "") : "?")).join(" to ");
  return [shape(entry.value), el("span", { class: "range", title: ends.every(known) ? "95 % interval" : "95 % interval; ?: so few samples have no limit on this side" }, "[" + text + "]")];
}

function table(heads, rows, numeric) {
  const kind = (index) => (numeric.includes(index) ? "n" : null);
  return el("table", null,
    el("thead", null, el("tr", null, heads.map((head, index) => el("th", { class: kind(index), scope: "col", title: meant(head) }, head)))),
    el("tbody", null, rows.map((row) => el("tr", null, row.map((cell, index) => el("td", { class: kind(index) }, cell))))));
}

function part(id, heading, note, ...content) {
  return el("section", { class: "part", id }, el("h2", null, heading), note && el("p", { class: "note" }, note), content);
}

// Pictures are drawn once the table and the list stand on the screen, one part after another.
const undrawn = [];
function later(id, heading, note, draw) {
  const section = part(id, heading, note);
  undrawn.push({ section, draw });
  return section;
}
function drawNext() {
  const { section, draw } = undrawn.shift();
  const content = [draw()].flat(Infinity).filter(Boolean);
  if (content.length) { section.append(...content); return; }
  section.remove();
  for (const link of document.querySelectorAll("nav a")) if (link.getAttribute("href") === "#" + section.id) link.remove();
}
function drawAll() {
  while (undrawn.length) drawNext();
  document.documentElement.dataset.drawn = "true";
}

function chooser(name, options, chosen, act) {
  const select = el("select", { onchange: () => act(select.value) },
    options.map(([value, text]) => el("option", { value, selected: value === chosen }, text)));
  return el("label", null, name + " ", select);
}

// A series is an endpoint of a run: one colour on the whole page.
const series = [];
data.runs.forEach((run, number) => {
  for (const cell of run.cells) {
    if (series.some((one) => one.run === number && one.endpoint === cell.endpoint)) continue;
    series.push({
      run: number, endpoint: cell.endpoint, color: "s" + (series.length % 8), kind: cell.latency_kind,
      control: Boolean(cell.control), name: many ? run.letter + " · " + cell.endpoint : cell.endpoint,
    });
  }
});
const seriesOf = (run, endpoint) => series.find((one) => one.run === run && one.endpoint === endpoint)
  || { color: "s7", name: endpoint, run, endpoint };
const legend = (shown) => el("div", { class: "legend" }, shown.map((one) => el("div", { class: one.color },
  el("i", { class: "dot" }), el("span", null, one.name, one.control ? " (control)" : ""))));

// Endpoints that are one under two names: OLD of the first run, NEW of the others.
const renamed = new Map(Object.entries(data.pairing.mapped));
const renamedBack = new Map([...renamed].map(([old, now]) => [now, old]));
const pairName = (run, endpoint) => (run === 0 && renamed.has(endpoint) ? `${endpoint} → ${renamed.get(endpoint)}`
  : run > 0 && renamedBack.has(endpoint) ? `${renamedBack.get(endpoint)} → ${endpoint}` : endpoint);

const cells = data.runs.flatMap((run, number) => run.cells.map((cell) => ({ ...cell, run: number })));
// The latency that matters most comes first wherever one is chosen.
const FIRST = ["first_audible_ms", "first_packet_ms", "first_text_ms"];
const ordered = [...FIRST.filter((name) => data.latencies.includes(name)), ...data.latencies.filter((name) => !FIRST.includes(name))];
const distinct = (values) => [...new Set(values)];
const suites = distinct(cells.map((cell) => cell.suite));
const conditions = distinct(cells.map((cell) => cell.condition));
const place = (cell) => [suites.length > 1 || conditions.length === 1 ? cell.suite : "",
  conditions.length > 1 ? cell.condition : ""].filter(Boolean).join(" · ");

function ticks(low, high, count) {
  const span = high - low || 1;
  if (!Number.isFinite(span) || low + span / count === low) return [low];
  const rough = span / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough);
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9 && found.length < 100; at += step) found.push(Number(at.toPrecision(12)));
  return found;
}
function scale(low, high, from, to) {
  const span = high - low || 1;
  return (value) => from + ((value - low) / span) * (to - from);
}
function cut(text, letters) {
  return text.length > letters ? text.slice(0, letters - 1) + "…" : text;
}
function across(x, low, high, top, bottom, shape, count) {
  return ticks(low, high, count || 6).map((at) => [
    svg("line", { class: "grid", x1: x(at), x2: x(at), y1: top, y2: bottom }),
    label(x(at), bottom + 16, shape(at), { "text-anchor": "middle" }),
  ]);
}
function quantile(sorted, share) {
  const at = (sorted.length - 1) * share;
  const low = Math.floor(at);
  return sorted[low] + (sorted[Math.min(low + 1, sorted.length - 1)] - sorted[low]) * (at - low);
}
