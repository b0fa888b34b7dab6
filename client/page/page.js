// The page, top to bottom; its state stands in the address: #key?filters.
const main = document.getElementById("main");

function headline() {
  const audible = cells.some((cell) => cell.metrics.first_audible_ms.n) || !cells.some((cell) => cell.metrics.first_text_ms.n);
  const first = audible ? "first_audible_ms" : "first_text_ms";
  const called = audible ? "first audible" : "first text";
  const at = (cell, name, share) => ranged(cell.metrics[name] && cell.metrics[name][share], whole);
  const right = (cell) => cell.control ? el("span", { class: "kind" }, "control") : [ranged(cell.metrics.accuracy, percent),
    cell.reply_channel === "text" && el("span", { class: "kind" }, " of its text")];
  const judges = (cell) => Object.entries(cell.metrics).filter(([name, entry]) => name.startsWith("judge_score:") && known(entry.value))
    .map(([name, entry]) => el("div", null, el("span", { class: "kind" }, name.slice(12), " "), ranged(entry, plain)));
  const ok = (cell) => { const done = cell.status.ok || 0; return el("span", { class: done < cell.planned ? "bad" : null }, `${done} / ${cell.planned}`); };
  const named = (cell) => [el("i", { class: "dot " + seriesOf(cell.run, cell.endpoint).color }), cell.endpoint, cell.control && el("span", { class: "kind" }, " control")];
  if (!many) {
    const judged = cells.some((cell) => judges(cell).length);
    const heads = ["endpoint", "suite", "condition", "ok / planned", "accuracy", "clear answers", judged && "judged",
      `${called} p50, ms`, "p90, ms", "first packet p50, ms", "reply p50, ms"].filter(Boolean);
    return table(heads, cells.map((cell) => [named(cell), cell.suite, cell.condition, ok(cell), right(cell),
      cell.control ? "–" : ranged(cell.metrics.parse_rate && { value: cell.metrics.parse_rate.value }, percent), judged && judges(cell),
      at(cell, first, "p50"), at(cell, first, "p90"), at(cell, "first_packet_ms", "p50"), at(cell, "reply_ms", "p50")]
      .filter((one, index) => judged || index !== 6)), heads.map((_, index) => index).filter((index) => index > 2));
  }
  const nameOf = (cell) => JSON.stringify([pairName(cell.run, cell.endpoint), cell.suite, cell.condition]);
  const rows = distinct(cells.map(nameOf));
  const of = (name, run) => cells.find((cell) => cell.run === run && nameOf(cell) === name);
  return el("table", null,
    el("thead", null,
      el("tr", null, el("th", { colspan: 3 }), ["ok / planned", "accuracy", `${called} p50, ms`].map((name) => el("th", { class: "group", colspan: data.runs.length, title: meant(name) }, name))),
      el("tr", null, ["endpoint", "suite", "condition"].map((name) => el("th", null, name)),
        [0, 1, 2].map(() => data.runs.map((run) => el("th", { class: "n", title: run.name }, run.letter))))),
    el("tbody", null, rows.map((name) => el("tr", null, JSON.parse(name).map((one) => el("td", null, one)),
      [ok, right, (cell) => at(cell, first, "p50")].map((shape) => data.runs.map((_, run) => {
        const cell = of(name, run);
        return el("td", { class: "n" }, cell ? shape(cell) : "–");
      }))))));
}

// A part with choices above a picture that is drawn anew for each.
function chosen(draw, controls) {
  const picture = el("div", null);
  const values = controls.map(([, options]) => options[0][0]);
  const show = () => picture.replaceChildren(...[draw(...values)].flat().filter(Boolean));
  show();
  const shown = controls.map(([name, options], index) => options.length > 1
    && chooser(name, options, values[index], (value) => { values[index] = value; show(); })).filter(Boolean);
  return [shown.length > 0 && el("div", { class: "controls" }, shown), el("div", { class: "card" }, picture)];
}
const every = (names) => (names.length > 1 ? [["", "all"]] : []).concat(names.map((name) => [name, name]));
const named = (name) => [name, name.replace(/_ms$/, "").replaceAll("_", " ")];

function latencyPart() {
  const metrics = ordered;
  if (!metrics.length) return null;
  const kinds = distinct(series.map((one) => one.kind).filter(Boolean));
  const note = "Left of a curve lies the share of trials that were faster; below, every trial, with the median as a point. Trials whose latency this machine spoiled are left out."
    + (kinds.length > 1 ? ` Kinds of latency are not to be compared with each other: ${series.map((one) => `${one.name} ${one.kind}`).join(", ")}.` : "");
  return later("latency", "Latency", note, () => [chosen(latencyChart, [["latency", metrics.map(named)], ["suite", every(suites)], ["condition", every(conditions)]]), figures(metrics)]);
}

function figures(metrics) {
  const rows = cells.flatMap((cell) => metrics.filter((name) => cell.metrics[name] && cell.metrics[name].n).map((name) => {
    const entry = cell.metrics[name], shape = /_ms$/.test(name) ? whole : plain;
    return [[el("i", { class: "dot " + seriesOf(cell.run, cell.endpoint).color }), seriesOf(cell.run, cell.endpoint).name], place(cell), el("span", { title: meant(name) }, named(name)[1]),
      ...["p50", "p90", "p95", "p99", "mean"].map((share) => ranged(entry[share], shape)), entry.n, entry.missing, entry.invalid];
  }));
  return el("details", null, el("summary", null, "All latencies in figures"), el("div", { class: "card" },
    table(["endpoint", "suite", "latency, ms", "p50", "p90", "p95", "p99", "mean", "n", "missing", "invalid"], rows, [3, 4, 5, 6, 7, 8, 9, 10]),
    el("p", { class: "note" }, "p95 needs 20 samples, p99 needs 100. Missing: no reply, or it did not happen. Invalid: this machine was late itself.")));
}

function analysisTables() {
  const figure = (cell, unit) => {
    if (!known(cell)) return "–";
    const shape = unit === "fraction" ? percent : plain;
    if (typeof cell === "object") return ranged(cell, shape);
    return typeof cell === "number" && !Number.isInteger(cell) ? shape(cell) : String(cell);
  };
  return data.runs.flatMap((run, number) => (run.analyses || []).flatMap((one) => one.tables.map((shown) => el("div", null,
    el("h3", null, `${many ? run.letter + ", " : ""}${one.suite}, ${one.endpoint}: ${shown.title}`), shown.note && el("p", { class: "note" }, shown.note),
    el("div", { class: "card" }, shown.name === "boxes" ? analysisBoxes(shown, number, one.endpoint) : null,
      table(shown.heads, shown.rows.map((row) => row.map((cell) => figure(cell, shown.unit))), shown.heads.map((_, index) => index).filter((index) => index > 0)))))));
}
function analysisBoxes(shown, run, endpoint) {
  const rows = shown.rows.filter((row) => row[1] === "points" && row.slice(2, 7).every((one) => typeof one === "number"))
    .map((row) => ({ name: row[0], color: seriesOf(run, endpoint).color, box: row.slice(2, 7), n: row[7] }));
  return rows.length ? boxChart(rows, (value) => `${plain(Number(value.toFixed(2)))} pp`) : null;
}

function conditionsPart() {
  if (conditions.length < 2 && !data.runs.some((run) => (run.analyses || []).length)) return null;
  return later("conditions", "Conditions", null, () => {
    const metrics = conditions.length > 1 ? ordered.filter((name) => differences(name).length) : [];
    return [metrics.length > 0 && [el("h3", null, "Change of latency, item by item"),
      el("p", { class: "note" }, "For each item, its mean under a condition less its mean without: lowest, quartiles, highest. Right of zero is slower."),
      chosen((metric) => boxChart(differences(metric), /_ms$/.test(metric) ? whole : plain), [["latency", metrics.map(named)]])], analysisTables()];
  });
}

function groupsPart() {
  const withGroups = cells.filter((cell) => cell.groups.length && !cell.control);
  if (!withGroups.length) return null;
  const of = distinct(withGroups.map((cell) => cell.suite)), under = distinct(withGroups.map((cell) => cell.condition));
  return later("groups", "Groups", "Accuracy in each group of the suite, with its 95 % interval.", () => chosen(groupChart, [["suite", of.map((one) => [one, one])], ["condition", under.map((one) => [one, one])]]));
}

function judgesPart() {
  const picture = gapChart();
  const rows = data.runs.flatMap((run) => ((run.judges || {}).judges || []).map((one) => [many ? `${run.letter}: ${one.name}` : one.name, one.models.join(", "),
    `${one.scored} of ${one.trials}`, one.endpoint_failed, one.judge_failed, known(one.asks) ? one.asks : "unknown", known(one.cost) ? `${plain(one.cost)} ${one.currency || ""}` : "unknown"]));
  if (!rows.length && !picture) return null;
  return part("judges", "Judges", null, rows.length > 0 && el("div", { class: "card" }, table(["judge", "model", "rated", "endpoint failed", "judge failed", "asks", "cost"], rows, [2, 3, 4, 5, 6])),
    picture && [el("h3", null, "Position gap"), el("p", { class: "note" }, "Rating with the response first less the rating with the reference first: 0 for a judge that order does not move."), el("div", { class: "card" }, picture)]);
}

function failuresPart() {
  const names = distinct(cells.flatMap((cell) => Object.keys(cell.status))).filter((name) => name !== "ok").sort();
  if (!names.length) return null;
  const link = (cell, name) => {
    const found = cell.status[name] || 0;
    if (!found) return el("span", { class: "kind" }, "0");
    return el("a", { class: "bad", href: "#?" + new URLSearchParams({ endpoint: cell.endpoint, suite: cell.suite, condition: cell.condition, status: name }) }, String(found));
  };
  return part("failures", "Failures", "A number leads to its trials.", el("div", { class: "card" }, table(["endpoint", "suite", "planned", "ok", ...names],
    cells.map((cell) => [seriesOf(cell.run, cell.endpoint).name, place(cell), cell.planned, cell.status.ok || 0, ...names.map((name) => link(cell, name))]),
    [2, 3, ...names.map((_, index) => index + 4)])));
}

function warningsPart() {
  const found = data.runs.flatMap((run) => run.warnings.map((one) => ({ ...one, run: run.letter })));
  const shown = (some) => el("ul", { class: "warnings" }, some.map((one) => el("li", null, el("code", null, one.code), many && el("b", null, one.run, " "), one.text, el("em", null, one.cure))));
  return found.length ? part("warnings", "Warnings", null, el("div", { class: "card" }, shown(found.slice(0, 5)),
    found.length > 6 ? el("details", null, el("summary", null, `${found.length - 5} more`), shown(found.slice(5))) : shown(found.slice(5)))) : null;
}

function gatesPart() {
  // Beside a comparison no gate waits for one.
  const about = (gate) => !compared || gate.verdict !== "not applicable";
  const found = data.runs.flatMap((run) => (run.gates || []).filter(about).map((gate) => [many ? `${run.letter}: ${gate.gate}` : gate.gate, gate.cell, known(gate.value) ? plain(gate.value) : "–",
    el("span", { class: gate.verdict === "failed" ? "bad" : gate.verdict === "passed" ? "good" : "kind" }, gate.verdict), gate.reason]));
  return found.length ? part("gates", "Gates", null, el("div", { class: "card" }, table(["gate", "cell", "value", "verdict", "reason"], found, [2]))) : null;
}

function instrumentPart() {
  const of = (entry) => ["p50", "p99", "max"].map((name) => (known(entry[name]) ? plain(entry[name]) : "–"));
  const rows = data.runs.flatMap((run) => [
    [many ? `${run.letter}: send lateness, ms` : "Send lateness, ms", ...of(run.audit.send_lateness_ms), "how late audio left this machine"],
    [many ? `${run.letter}: loop lag, ms` : "Loop lag, ms", ...of(run.audit.loop_lag_ms), "how late this program noticed what came"]]);
  const facts = data.runs.map((run) => {
    const late = run.audit.latency_invalid;
    const clock = (run.machine || {}).clock;
    return el("dl", { class: "facts" }, fact("run", many ? `${run.letter}: ${run.name}` : null),
      fact("latencies left out", el("span", { class: late ? "bad" : null }, `${late}, as this machine was too late itself`)),
      fact("clock", "one monotonic clock (perf_counter_ns) for all that was sent and all that came" + (clock ? `: ${clock}` : "")),
      fact("hosts", run.audit.hosts.join(", ")), fact("voxmeter", run.voxmeter), fact("pacing", run.pacing), fact("machine", run.machine && words({ ...run.machine, clock: undefined })));
  });
  const calibrated = data.runs.filter((run) => run.calibration).map((run) => [el("h3", null, (many ? run.letter + ": " : "") + `Calibration of ${run.calibration.measured_at || "this machine"}`),
    el("div", { class: "card" }, table(["sessions at once", "mark", "n", "error p50, ms", "p99, ms", "largest, ms"],
      (run.calibration.errors || []).map((one) => [one.sessions, one.mark.replaceAll("_", " "), one.n, plain(one.p50_ms), plain(one.p99_abs_ms), plain(one.max_abs_ms)]), [2, 3, 4, 5]))]);
  const at = (entry, name) => (entry && entry[name] ? plain(entry[name].value) : "–");
  const mixed = data.runs.filter((run) => (run.audit.by_host || []).length).map((run) => [el("h3", null, (many ? run.letter + ": " : "") + "By machine: figures above mix these, and latencies of one are not those of another"),
    el("div", { class: "card" }, table(["machine", "endpoint", "suite", "condition", "trials", "first audible p50, ms", "p90", "first packet p50"],
      run.audit.by_host.map((one) => [one.host, one.endpoint, one.suite, one.condition, one.trials, at(one.first_audible_ms, "p50"), at(one.first_audible_ms, "p90"), at(one.first_packet_ms, "p50")]), [4, 5, 6, 7]))]);
  return part("instrument", "The instrument's own error", "What this client itself added, over all counted trials.",
    el("div", { class: "card" }, table(["", "p50", "p99", "largest", "what it is"], rows, [1, 2, 3]), facts), mixed,
    calibrated.length ? calibrated : el("p", { class: "note" }, "This machine was not calibrated: voxmeter calibrate measures its error against known delays."));
}

function keepState() {
  const key = state.open >= 0 ? (many ? cellOf(state.open)[0] + ":" : "") + trials.key[state.open] : "";
  const wanted = new URLSearchParams(Object.entries(state.filters).filter(([, value]) => value));
  if (state.sort) wanted.set("sort", (state.down ? "-" : "") + state.sort);
  const text = wanted.toString();
  const address = "#" + key + (text ? "?" + text : "");
  if (address !== (location.hash || "#")) history.replaceState(null, "", address);
}

function readState(jump) {
  const [key, query] = location.hash.slice(1).split(/\?(.*)/s);
  const named = document.getElementById(key);
  if (named && named.classList.contains("part") && !query) { refresh(true); return; }
  const wanted = new URLSearchParams(query || "");
  const sort = wanted.get("sort") || "";
  state.filters = Object.fromEntries([...wanted].filter(([name]) => listColumns.some((column) => column.name === name)));
  state.down = sort.startsWith("-");
  state.sort = sort.replace(/^-/, "");
  state.open = -1;
  refresh(true);
  const [, run, bare] = key.match(/^(?:(\d+):)?(.*)$/s);
  const row = bare ? trials.key.findIndex((one, index) => one === bare && (!run || cellOf(index)[0] === Number(run))) : -1;
  if (row >= 0) openRow(row); else if (!sheet.hidden) closeTrial();
  if (jump && query && row < 0) { drawAll(); document.getElementById("trials").scrollIntoView(); }
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") { if (state.open >= 0) closeTrial(); else document.activeElement.blur(); return; }
  if (/^(INPUT|SELECT|TEXTAREA|AUDIO|SUMMARY)$/.test(event.target.tagName)) return;
  const step = { j: 1, k: -1, ArrowDown: 1, ArrowUp: -1 }[event.key];
  const ours = state.open >= 0 || !event.key.startsWith("Arrow") || event.target === list;
  if (step && ours) {
    event.preventDefault();
    if (state.open >= 0) step_(step); else moveTo(state.at + step);
  } else if (event.key === "Enter" && event.target.tagName !== "BUTTON" && event.target.tagName !== "A" && state.open < 0 && shownRows.length) {
    event.preventDefault();
    openRow(shownRows[state.at]);
  }
});

function theme(name) {
  state.theme = name;
  document.documentElement.dataset.theme = name;
  document.getElementById("theme").textContent = name === "dark" ? "Light" : "Dark";
}
const system = window.matchMedia("(prefers-color-scheme: dark)");
let own = "";
try { own = localStorage.getItem("voxmeter-theme") || ""; } catch { /* a browser that keeps nothing for local files */ }
theme(own || (system.matches ? "dark" : "light"));
system.addEventListener("change", () => { if (!own) theme(system.matches ? "dark" : "light"); });
document.getElementById("theme").addEventListener("click", () => {
  own = state.theme === "dark" ? "light" : "dark";
  theme(own);
  try { localStorage.setItem("voxmeter-theme", own); } catch { /* kept for this page alone */ }
});

const title = many ? `${data.runs.length} runs` : data.runs[0].name;
document.title = `voxmeter: ${title}`;
document.getElementById("title").textContent = title;
document.getElementById("about").textContent = many ? data.runs.map((run) => `${run.letter}: ${run.name}`).join("   ")
  : `${whole(total)} trials, ${series.length} endpoint${series.length === 1 ? "" : "s"}`;
const inCard = (draw) => () => { const picture = draw(); return picture && el("div", { class: "card" }, picture); };
const first = data.latencies.includes("first_audible_ms") ? "first_audible_ms" : "first_text_ms";
const parts = [
  comparedPart(), compared && changesPart(),
  part("results", "Results", "A value in brackets is its 95 % interval.", el("div", { class: "card" }, headline())),
  gatesPart(), warningsPart(),
  later("accuracy", "Accuracy", data.meanings.accuracy && data.meanings.accuracy.text, inCard(accuracyChart)),
  latencyPart(),
  later("both", "Accuracy against latency", null, inCard(() => scatterChart(first))),
  !compared && changesPart(), groupsPart(), conditionsPart(), publishedPart(), judgesPart(), failuresPart(), coursePart(), trialsPart(), instrumentPart(),
].filter(Boolean);
main.append(...parts);
document.getElementById("sections").append(...parts.map((one) => el("a", { href: "#" + one.id }, one.querySelector("h2").textContent.replace("The instrument's own error", "Instrument").replace("Accuracy against latency", "Both").replace("Beside published figures", "Published").replace("Course of the run", "Course"))));
window.addEventListener("hashchange", () => readState(true));
readState(true);
document.documentElement.dataset.ready = "true";

// The rest when the browser has shown this much; a hidden page draws too.
let begun = false;
function drawOn() {
  const end = performance.now() + 100; // each pause costs a painting of the whole page
  while (undrawn.length && performance.now() < end) drawNext();
  if (undrawn.length) { setTimeout(drawOn, 0); return; }
  drawAll();
  const section = document.getElementById(location.hash.slice(1));
  if (section && section.classList.contains("part")) section.scrollIntoView();
}
const begin = () => { if (!begun) { begun = true; drawOn(); } };
requestAnimationFrame(() => setTimeout(begin, 0));
setTimeout(begin, 500);
