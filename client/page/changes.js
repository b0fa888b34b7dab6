// Two sides by side: what each item took and whether it was right, then and now.
const MOVED = 25;
const compared = data.pairing.found;
const oneRun = Boolean(compared) && !many; // two endpoints of one run
const sides = compared ? [[0, data.runs.length - 1]] : data.runs.slice(1).map((_, number) => [0, number + 1]);
const sideName = (run, now) => (compared ? (now ? "new" : "base") : data.runs[run].letter);

// What a cell is called on one side of a comparison; null where it is on the other side alone.
function namesOf(run, now) {
  return trials.cells.map(([ofRun, endpoint, suite, condition]) => {
    if (ofRun !== run) return null;
    if (!oneRun) return JSON.stringify([pairName(run, endpoint), suite, condition]);
    const [old, other] = now ? [renamedBack.get(endpoint), endpoint] : [endpoint, renamed.get(endpoint)];
    return known(old) && known(other) ? JSON.stringify([`${old} → ${other}`, suite, condition]) : null;
  });
}

function meansOf(run, metric, now) {
  const found = new Map(), names = namesOf(run, now), column = trials[metric] || [];
  for (let row = 0; row < total; row += 1) {
    const cell = names[trials.cell[row]];
    if (cell === null || statusOf(row) === "warm-up") continue;
    const name = cell + "\n" + trials.item[row];
    let one = found.get(name);
    if (!one) { one = { sum: 0, n: 0, right: 0, scored: 0, row }; found.set(name, one); }
    if (known(column[row]) && counted(row)) { one.sum += column[row]; one.n += 1; }
    if (known(trials.right[row])) { one.right += trials.right[row]; one.scored += 1; }
  }
  return found;
}
const cellAt = (row) => { const [run, endpoint, suite, condition] = cellOf(row); return cells.find((cell) => cell.run === run && cell.endpoint === endpoint && cell.suite === suite && cell.condition === condition) || {}; };
function refusedAt(row) {
  const [, endpoint, suite, condition] = cellOf(row);
  const cell = compared && compared.cells.find((one) => one.endpoint === endpoint && one.suite === suite && one.condition === condition);
  return (cell && cell.refused) || {};
}

// Items that both sides asked; a change of latency only where both measured the same kind of it.
const pairsKept = new Map();
function pairsOf(base, run, metric) {
  const kept = `${base} ${run} ${metric}`;
  if (pairsKept.has(kept)) return pairsKept.get(kept);
  const [before, after] = [meansOf(base, metric, false), meansOf(run, metric, true)];
  const facts = new Map();
  const found = [];
  for (const [name, now] of after) {
    const was = before.get(name);
    if (!was) continue;
    const cell = name.slice(0, name.indexOf("\n"));
    if (!facts.has(cell)) facts.set(cell, { parts: JSON.parse(cell), alike: cellAt(was.row).latency_kind === cellAt(now.row).latency_kind, refused: refusedAt(now.row) });
    const { parts, alike, refused } = facts.get(cell);
    found.push({ parts, item: trials.item[now.row], was, now,
      change: was.n && now.n && alike && !refused.latency ? now.sum / now.n - was.sum / was.n : null,
      flip: was.scored && now.scored && !refused.answers ? now.right / now.scored - was.right / was.scored : null });
  }
  pairsKept.set(kept, found);
  return found;
}

function changesChart(metric, side, order) {
  const [base, run] = sides[Number(side)], pairs = pairsOf(base, run, metric);
  const shape = /_ms$/.test(metric) ? whole : plain;
  const signed = (value) => (value > 0 ? "+" : "") + shape(value).replace("-", "−");
  const names = distinct(pairs.map((pair) => pair.parts[0]));
  const boxes = names.map((endpoint) => {
    const mine = pairs.filter((pair) => pair.parts[0] === endpoint && known(pair.change));
    return { endpoint, row: mine.length ? mine[0].now.row : -1, values: mine.map((pair) => pair.change).sort((a, b) => a - b) };
  }).filter((one) => one.values.length)
    .map((one) => ({ name: `${one.endpoint}  ${sideName(run, true)} − ${sideName(base, false)}`, color: cellSeries[trials.cell[one.row]].color, n: one.values.length, box: [0, 0.25, 0.5, 0.75, 1].map((share) => quantile(one.values, share)) }));
  const moved = pairs.filter((pair) => pair.flip || pair.change)
    .map((pair) => ({ ...pair, by: [Math.abs(pair.flip || 0), Math.abs(pair.change || 0)] }))
    .sort((a, b) => (order === "latency" ? b.by[1] - a.by[1] : b.by[0] - a.by[0] || b.by[1] - a.by[1])).slice(0, MOVED);
  const share = (one) => (one.scored ? (one.scored === 1 ? ["wrong", "right"][one.right] : `${one.right} of ${one.scored}`) : "–");
  const mean = (one) => (one.n ? shape(one.sum / one.n) : "–");
  const link = (of, one, now) => el("a", { href: keyAddress(of, trials.key[one.row]) }, sideName(of, now));
  return [boxes.length > 0 && boxChart(boxes, shape),
    moved.length > 0 ? table(["endpoint", "suite", "condition", "item", "was right", "is right", "was", "is", "change", "hear"],
      moved.map(({ parts, item, was, now, change, flip }) => [...parts.map((one) => cut(one, 40)), cut(item, 40), share(was), el("span", { class: flip > 0 ? "good" : flip < 0 ? "bad" : null }, share(now)),
        mean(was), mean(now), known(change) ? signed(change) : "–", [link(base, was, false), " ", link(run, now, true)]]), [4, 5, 6, 7, 8, 9])
      : el("p", { class: "note" }, "Nothing moved that can be compared.")];
}

function changesPart() {
  if (!sides.length) return null;
  const metrics = ordered.filter((name) => sides.every(([base, run]) => [base, run].every((one) => trials[name].some((value, row) => known(value) && cellOf(row)[0] === one))));
  const pairs = sides.map(([base, run], number) => [String(number), `${sideName(run, true)} against ${sideName(base, false)}`]).filter(([number]) => pairsOf(...sides[number], metrics[0] || "").length);
  if (!pairs.length) return null;
  const lost = compared ? compared.gates.filter((gate) => gate.verdict === "failed").map((gate) => gate.metric) : [];
  const orders = [["answers", "answers that changed"], ["latency", "largest changes of latency"]];
  if (lost.length && lost.every((name) => /_ms$/.test(name))) orders.reverse(); // what failed the gate comes first
  return later("changes", "What moved", `Each item that both sides share, its mean now less its mean then: boxes over items, right of zero is slower. Below, the answers that changed and the largest changes of latency, each to be heard on both sides${compared ? "" : "; voxmeter compare says which are real"}.`,
    () => chosen(changesChart, [["latency", metrics.length ? metrics.map(named) : [["", "none"]]], ["sides", pairs], ["first", orders]]));
}
