// What `voxmeter compare` found, as it stands in its JSON.
const verdictClass = (verdict) => (verdict === "failed" || verdict === "regression" || verdict === "gate failed" ? "bad" : verdict === "passed" || verdict === "no regression" ? "good" : "kind");

function differenceOf(found, unit) {
  if (!found || !known(found.value)) return "–";
  const scale = unit === "fraction" ? 100 : 1, shape = unit === "ms" ? whole : (value) => plain(Number(value.toFixed(unit === "fraction" ? 1 : 6)));
  const signed = (value) => (value > 0 ? "+" : "") + shape(value * scale).replace("-", "−");
  const text = ["low", "high"].map((end) => (known(found[end]) ? signed(found[end]) : "?")).join(" to ");
  return [signed(found.value) + (unit === "fraction" ? " pp" : ""), el("span", { class: "range", title: "95 % interval" }, known(found.low) || known(found.high) ? "[" + text + "]" : "")];
}

function comparedPart() {
  if (!compared) return null;
  const unitOf = (name) => (data.meanings[name] || {}).unit;
  const value = (one, unit) => (!known(one) ? "–" : unit === "fraction" ? percent(one) : unit === "ms" ? whole(one) : plain(one));
  const place = (cell) => [cell.base_endpoint === cell.endpoint ? cell.endpoint : `${cell.base_endpoint} → ${cell.endpoint}`, cell.suite, cell.condition].join(" / ");
  const gates = compared.gates.map((gate) => [gate.gate, gate.cell, gate.difference ? differenceOf({ value: gate.difference[0], low: gate.difference[1], high: gate.difference[2] }, unitOf(gate.metric)) : "–",
    known(gate.p_holm) ? plain(gate.p_holm) : "–", el("span", { class: verdictClass(gate.verdict) }, gate.verdict), gate.reason]);
  const rows = compared.cells.flatMap((cell, number) => data.pairing.metrics[number].map((name) => {
    const one = cell.metrics[name], unit = unitOf(name);
    return [place(cell), el("span", { title: meant(name) }, named(name)[1]), value(one.base, unit), value(one.new, unit), differenceOf(one.median, unit), differenceOf(one.mean, unit), known(one.ratio) ? "×" + one.ratio.toFixed(2) : "–", one.n];
  }));
  const notes = [...compared.warnings, ...compared.missing.map((one) => `The ${one.in} run has no ${[one.endpoint, one.suite, one.condition].join(" / ")}.`),
    ...compared.cells.flatMap((cell) => Object.entries(cell.refused).map(([what, reasons]) => `Not compared: ${what} of ${place(cell)}: ${reasons.join("; ")}`))];
  return part("compared", "Comparison", `Base ${compared.base.run}, new ${compared.new.run}. Differences are new less base, item by item, with 95 % intervals; of shares in percentage points.`,
    el("div", { class: "card" }, el("p", { class: "verdict " + (compared.said.startsWith("could not be measured") ? "kind" : verdictClass(compared.verdict)) }, compared.said),
      gates.length > 0 && table(["gate", "cell", "difference", "p (Holm)", "verdict", "reason"], gates, [2, 3]),
      notes.length > 0 && el("ul", { class: "warnings" }, notes.map((one) => el("li", null, one)))),
    el("details", { open: rows.length <= 30 }, el("summary", null, "All differences"), el("div", { class: "card" },
      table(["cell", "metric", "base", "new", "median of differences", "mean of differences", "ratio", "n"], rows, [2, 3, 4, 5, 6, 7]))));
}
