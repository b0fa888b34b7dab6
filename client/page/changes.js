// Two runs side by side: what each item took and whether it was right, then and now.
const MOVED = 25;

const namesAcross = trials.cells.map(([, ...cell]) => JSON.stringify(cell));

function meansOf(run, metric) {
  const found = new Map();
  for (let row = 0; row < total; row += 1) {
    if (cellOf(row)[0] !== run || statusOf(row) === "warm-up") continue;
    const name = namesAcross[trials.cell[row]] + "\n" + trials.item[row];
    const one = found.get(name) || { sum: 0, n: 0, right: 0, scored: 0, row };
    if (counted(row) && known((trials[metric] || [])[row])) { one.sum += trials[metric][row]; one.n += 1; }
    if (known(trials.right[row])) { one.right += trials.right[row]; one.scored += 1; }
    found.set(name, one);
  }
  return found;
}
const kindOf = (run, [endpoint, suite, condition]) => (cells.find((cell) => cell.run === run && cell.endpoint === endpoint
  && cell.suite === suite && cell.condition === condition) || {}).latency_kind;

// Items that both runs asked; a change of latency only where both measured the same kind of it.
function pairsOf(run, metric) {
  const [before, after] = [meansOf(0, metric), meansOf(run, metric)];
  return [...after].filter(([name]) => before.has(name)).map(([name, now]) => {
    const was = before.get(name), parts = [...JSON.parse(name.slice(0, name.indexOf("\n"))), trials.item[now.row]];
    const timed = was.n && now.n && kindOf(0, parts) === kindOf(run, parts);
    const scored = was.scored && now.scored;
    return { parts, was, now, change: timed ? now.sum / now.n - was.sum / was.n : null,
      flip: scored ? now.right / now.scored - was.right / was.scored : null };
  });
}

function changesChart(metric, chosenRun) {
  const run = Number(chosenRun), pairs = pairsOf(run, metric);
  const shape = /_ms$/.test(metric) ? whole : plain;
  const signed = (value) => (value > 0 ? "+" : "") + shape(value).replace("-", "−");
  const names = distinct(pairs.map((pair) => pair.parts[0]));
  const boxes = names.map((endpoint) => ({ endpoint, values: pairs.filter((pair) => pair.parts[0] === endpoint && known(pair.change)).map((pair) => pair.change).sort((a, b) => a - b) }))
    .filter((one) => one.values.length)
    .map((one) => ({ name: `${one.endpoint}  ${data.runs[run].letter} − ${data.runs[0].letter}`, color: seriesOf(run, one.endpoint).color, n: one.values.length, box: [0, 0.25, 0.5, 0.75, 1].map((share) => quantile(one.values, share)) }));
  const moved = pairs.filter((pair) => pair.flip || pair.change)
    .sort((a, b) => Math.abs(b.flip || 0) - Math.abs(a.flip || 0) || Math.abs(b.change || 0) - Math.abs(a.change || 0)).slice(0, MOVED);
  const share = (one) => (one.scored ? (one.scored === 1 ? ["wrong", "right"][one.right] : `${one.right} of ${one.scored}`) : "–");
  const mean = (one) => (one.n ? shape(one.sum / one.n) : "–");
  const link = (of, one) => el("a", { href: `#${of}:${trials.key[one.row]}` }, data.runs[of].letter);
  return [boxes.length > 0 && boxChart(boxes, shape),
    moved.length > 0 && table(["endpoint", "suite", "condition", "item", "was right", "is right", "was", "is", "change", "hear"],
      moved.map(({ parts, was, now, change, flip }) => [...parts.slice(0, 3), cut(parts[3], 40), share(was), el("span", { class: flip > 0 ? "good" : flip < 0 ? "bad" : null }, share(now)),
        mean(was), mean(now), known(change) ? signed(change) : "–", [link(0, was), " ", link(run, now)]]), [4, 5, 6, 7, 8, 9])];
}

function changesPart() {
  if (!many || !data.runs.some((_, run) => run && pairsOf(run, ordered[0] || "").length)) return null;
  const timed = (run, name) => trials[name].some((value, row) => known(value) && cellOf(row)[0] === run);
  const metrics = ordered.filter((name) => timed(0, name) && data.runs.some((_, run) => run && timed(run, name)));
  if (!metrics.length) return null;
  const runs = data.runs.map((run, number) => [String(number), `${run.letter} against ${data.runs[0].letter}`]).slice(1);
  return part("changes", "What moved", `Each item that ${data.runs[0].letter} and another run share under the same names, its mean now less its mean then: boxes over items, right of zero is slower. Below, answers that changed, then the largest changes of latency; voxmeter compare says which are real.`,
    chosen(changesChart, [["latency", metrics.map(named)], ["runs", runs]]));
}
