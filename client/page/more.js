// The course of a run, and published figures beside its own.
const keyAddress = (run, key) => "#" + (many ? run + ":" : "") + key;

function coursePart() {
  const shown = cells.filter((cell) => cell.course && (cell.course.drift || cell.course.cold_against_warm || cell.course.outliers.n));
  if (!shown.length) return null;
  const rows = shown.map((cell) => {
    const { drift, cold_against_warm: turns, outliers } = cell.course;
    const links = outliers.largest.map((one, index) => [index > 0 && el("br"), el("a", { href: keyAddress(cell.run, one.key) }, cut(one.key, 60)), " ", el("span", { class: "kind" }, asMs(one.first_audible_ms))]);
    const change = drift && drift.last - drift.first;
    return [seriesOf(cell.run, cell.endpoint).name, place(cell), drift ? whole(drift.first) : "–", drift ? whole(drift.last) : "–",
      drift ? (change > 0 ? "+" : "") + whole(change).replace("-", "−") : "–", drift ? (drift.p < 0.001 ? "< 0.001" : plain(drift.p)) : "–",
      turns ? [whole(turns.cold), " ", el("span", { class: "kind" }, `n ${turns.n}`)] : "–", turns ? whole(turns.warm) : "–", outliers.n || "0", links];
  });
  return later("course", "Course of the run", "Time to first audible, in ms. Drift: the first third of the trials against the last, with the probability of so much by chance (rank test). Cold: the warm-up turns, which are in no other figure. Outliers lie far above the rest and count as they are; each leads to its trial.",
    () => el("div", { class: "card" }, table(["endpoint", "suite", "first third", "last third", "drift", "p", "cold", "warm", "outliers", "the largest"], rows, [2, 3, 4, 5, 6, 7, 8])));
}

function publishedPart() {
  const found = data.runs.filter((run) => run.published);
  if (!found.length) return null;
  const own = (figure, scale) => {
    if (!figure) return "–";
    const ends = known(figure.low) && known(figure.high) ? `[${plain(figure.low * scale)} to ${plain(figure.high * scale)}]` : "";
    const notes = [known(figure.items) && `n ${figure.items}`, figure.without && figure.without.length && `without ${figure.without.join(", ")}`].filter(Boolean).join("; ");
    return [el("b", null, figure.text), " ", el("span", { class: "kind" }, ends, notes && ` (${notes})`)];
  };
  return later("published", "Beside published figures", "Rows in bold are of this run; * marks what does not follow from the paper's own figures.", () => found.map((run) => {
    const one = run.published;
    return el("div", null, el("h3", null, many && run.letter + ": ", one.about), el("p", { class: "note" }, "Source: ", one.source, "."),
      (one.warnings.length > 0 || one.caveats.length > 0) && el("ul", { class: "warnings" }, one.warnings.map((text) => el("li", null, el("code", null, "warning"), text)), one.caveats.map((text) => el("li", null, text))),
      !one.tables.length && el("p", { class: "note" }, "This run has no figure that stands in one of its tables."),
      one.tables.map((shown) => [el("h3", null, shown.title, shown.judge && `, rated by ${shown.judge}`), el("div", { class: "card" },
        table(["system", "size", ...shown.columns], [
          ...shown.systems.map((system) => [system.system, system.size || "–", ...shown.columns.map((name, index) => [system.figures[index] || "–", Object.hasOwn(system.notes, name) && el("span", { title: system.notes[name] }, " *")])]),
          ...shown.yours.map((mine) => [el("b", null, mine.endpoint, mine.judge && ` (${mine.judge})`), mine.size || "–", ...mine.figures.map((figure) => own(figure, shown.unit === "percent" ? 100 : 1))]),
        ], shown.columns.map((_, index) => index + 2)))]));
  }));
}
