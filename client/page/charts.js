// Charts as plain SVG, from the figures of the summaries and from the list of trials.
const trials = data.trials;
const total = trials.key.length;
const cellSeries = trials.cells.map(([run, endpoint]) => seriesOf(run, endpoint));
const cellOf = (row) => trials.cells[trials.cell[row]];
const statusOf = (row) => trials.words[trials.status[row]];
const counted = (row) => trials.valid[row] && ["ok", "truncated"].includes(statusOf(row));

// Rows of points with intervals: one row a figure.
function forest(rows, low, high, shape, zero) {
  const left = 250, width = 900, line = 26, top = 6, bottom = top + line * rows.length;
  const x = scale(low, high, left, width - 90);
  const clamp = (value) => Math.min(Math.max(value, low), high);
  return svg("svg", { viewBox: `0 0 ${width} ${bottom + 26}`, role: "img" },
    across(x, low, high, top, bottom, shape),
    zero && svg("line", { class: "zero", x1: x(0), x2: x(0), y1: top, y2: bottom }),
    rows.map((row, index) => {
      const y = top + line * (index + 0.5);
      const { value, low: from, high: to } = row.entry;
      return svg("g", { class: row.color },
        label(left - 12, y + 4, cut(row.name, 40), { "text-anchor": "end", class: "ink" }),
        known(from) && known(to) && svg("line", { class: "whisker", x1: x(clamp(from)), x2: x(clamp(to)), y1: y, y2: y }),
        svg("circle", { class: "point", cx: x(clamp(value)), cy: y, r: 5.5 }),
        label(width - 4, y + 4, shape(value), { "text-anchor": "end", class: "ink" }),
        svg("title", null, `${row.name}: ${shape(value)}` + (known(from) && known(to) ? `, 95 % interval ${shape(from)} to ${shape(to)}` : "")));
    }));
}

function accuracyChart() {
  const rows = cells.filter((cell) => !cell.control && known(cell.metrics.accuracy && cell.metrics.accuracy.value))
    .map((cell) => ({ name: seriesOf(cell.run, cell.endpoint).name + "  " + place(cell), color: seriesOf(cell.run, cell.endpoint).color, entry: cell.metrics.accuracy }));
  return rows.length ? forest(rows, 0, 1, (value) => plain(Number((100 * value).toFixed(1))) + "%") : null;
}

function scatterChart(metric) {
  const shown = cells.filter((cell) => !cell.control && known(cell.metrics.accuracy && cell.metrics.accuracy.value)
    && cell.metrics[metric] && cell.metrics[metric].p50);
  if (!shown.length) return null;
  const width = 900, height = 340, left = 56, bottom = height - 46;
  const values = shown.flatMap((cell) => ["value", "low", "high"].map((end) => cell.metrics[metric].p50[end])).filter(known);
  const pad = (Math.max(...values) - Math.min(...values)) * 0.08 || 50;
  const low = Math.min(Math.min(...values) - pad, Math.min(...values)), high = Math.max(...values) + pad;
  const x = scale(low, high, left, width - 20), y = scale(0, 1, bottom, 12);
  const points = shown.map((cell) => [x(cell.metrics[metric].p50.value), y(cell.metrics.accuracy.value)]);
  const taken = points.map(([cx, cy]) => [cx - 7, cx + 7, cy - 7, cy + 7]);
  // A name stands where it covers no point and no other name, else in the point's title alone.
  const named = (text, cx, cy) => {
    const long = text.length * 6.6;
    for (const [dx, dy] of [[11, -9], [-11 - long, -9], [11, 18], [-11 - long, 18]]) {
      const box = [cx + dx, cx + dx + long, cy + dy - 12, cy + dy + 3];
      const free = box[0] > left && box[1] < width - 4 && box[2] > 0 && box[3] < bottom
        && taken.every((one) => box[0] > one[1] || box[1] < one[0] || box[2] > one[3] || box[3] < one[2]);
      if (free) { taken.push(box); return label(cx + dx, cy + dy, text, { class: "ink" }); }
    }
    return null;
  };
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" },
    across(x, low, high, 12, bottom, whole),
    [0, 0.25, 0.5, 0.75, 1].map((at) => [svg("line", { class: "grid", x1: left, x2: width - 20, y1: y(at), y2: y(at) }),
      label(left - 8, y(at) + 4, at * 100 + "%", { "text-anchor": "end" })]),
    label((left + width) / 2, height - 8, metric.replaceAll("_", " ").replace(/ ms$/, ", ms") + " (p50); up and left is better", { "text-anchor": "middle" }),
    shown.map((cell) => {
      const time = cell.metrics[metric].p50, right = cell.metrics.accuracy;
      const one = seriesOf(cell.run, cell.endpoint);
      const cx = x(time.value), cy = y(right.value);
      return svg("g", { class: one.color },
        known(time.low) && known(time.high) && svg("line", { class: "whisker", x1: x(time.low), x2: x(time.high), y1: cy, y2: cy }),
        known(right.low) && known(right.high) && svg("line", { class: "whisker", x1: cx, x2: cx, y1: y(right.low), y2: y(right.high) }),
        svg("circle", { class: "point", cx, cy, r: 6.5 }),
        named(cut(one.name + (conditions.length > 1 || suites.length > 1 ? " " + place(cell) : ""), 44), cx, cy),
        svg("title", null, `${one.name} ${place(cell)}: ${percent(right.value)}, ${asMs(time.value)}`));
    }));
  return [legend(distinct(shown.map((cell) => seriesOf(cell.run, cell.endpoint)))), picture];
}

// Every valid latency of a selection, sorted, by series.
function samplesOf(metric, suite, condition) {
  const column = trials[metric];
  const found = new Map(series.map((one) => [one, []]));
  const into = trials.cells.map(([, , ofSuite, ofCondition], cell) => ((suite && suite !== ofSuite) || (condition && condition !== ofCondition) ? null : found.get(cellSeries[cell])));
  for (let row = 0; row < total; row += 1) {
    if (known(column[row]) && into[trials.cell[row]] && counted(row)) into[trials.cell[row]].push(column[row]);
  }
  return [...found].filter(([, values]) => values.length).map(([one, values]) => [one, [...Float64Array.from(values).sort()]]);
}

function latencyChart(metric, suite, condition) {
  const shown = samplesOf(metric, suite, condition);
  if (!shown.length) return el("p", { class: "note" }, "No trial of this selection has such a latency.");
  const shape = /_ms$/.test(metric) ? whole : plain;
  const width = 900, left = 190, right = width - 24, top = 12, tall = 260, bottom = top + tall, strip = 26;
  const low = Math.min(...shown.map(([, values]) => values[0]));
  const most = Math.max(...shown.map(([, values]) => (values.length < 100 ? values.at(-1) : quantile(values, 0.99))));
  const high = most + (most - low) * 0.05 || low + 1;
  const beyond = shown.reduce((sum, [, values]) => sum + values.filter((one) => one > high).length, 0);
  const x = scale(low - (high - low) * 0.03, high, left, right), y = scale(0, 1, bottom, top);
  const height = bottom + 24 + strip * shown.length + 44;
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" },
    across(x, low, high, top, height - 44, shape, 7),
    label((left + right) / 2, height - 6, metric.replace(/_ms$/, "").replaceAll("_", " ") + (/_ms$/.test(metric) ? ", ms" : ""), { "text-anchor": "middle" }),
    [0, 0.5, 0.9, 1].map((at) => [svg("line", { class: "grid", x1: left, x2: right, y1: y(at), y2: y(at) }),
      label(left - 8, y(at) + 4, at === 0 ? "0%" : at * 100 + "% of trials", { "text-anchor": "end" })]),
    shown.map(([one, values], index) => {
      const every = Math.max(1, Math.ceil(values.length / 400));
      let path = "";
      values.forEach((value, rank) => {
        if ((rank % every && rank < values.length - 1) || value > high) return;
        const level = y((rank + 1) / values.length).toFixed(1);
        path += path ? `H${x(value).toFixed(1)}V${level}` : `M${x(value).toFixed(1)} ${y(0)}V${level}`;
      });
      const at = bottom + 24 + strip * index;
      let marks = "";
      values.forEach((value, rank) => {
        if (rank % every === 0 && value <= high) marks += `M${x(value).toFixed(1)} ${at + 4}v${strip - 10}`;
      });
      const median = quantile(values, 0.5);
      return svg("g", { class: one.color },
        svg("path", { class: "series", d: path }), svg("path", { class: "tick", d: marks }),
        median <= high && svg("circle", { class: "point", cx: x(median), cy: at + strip / 2 - 1, r: 5.5 }),
        label(left - 8, at + strip / 2 + 3, `${cut(one.name, 20)}  (${values.length})`, { "text-anchor": "end", class: "ink" }),
        svg("title", null, `${one.name}: median ${shape(median)}, p90 ${shape(quantile(values, 0.9))}, n ${values.length}`));
    }));
  return [legend(shown.map(([one]) => one)), picture,
    beyond > 0 && el("p", { class: "note" }, `${beyond} slower than the 99th percentile of the slowest lie beyond the right edge.`)];
}

function groupChart(suite, condition) {
  const shown = cells.filter((cell) => cell.suite === suite && cell.condition === condition && !cell.control && cell.groups.length);
  const figure = (group) => group && group.metrics.accuracy && known(group.metrics.accuracy.value) ? group.metrics.accuracy : null;
  const paths = distinct(shown.flatMap((cell) => cell.groups.filter(figure).map((group) => JSON.stringify(group.path))))
    .sort((a, b) => { const [one, other] = [a, b].map((path) => JSON.parse(path).join("\u0000")); return one < other ? -1 : Number(one > other); });
  if (!paths.length) return el("p", { class: "note" }, "No group of this selection has an accuracy.");
  const bar = 11, gap = 12, left = 250, width = 900;
  const x = scale(0, 1, left, width - 110);
  let y = 6;
  const rows = paths.map((path) => {
    const names = JSON.parse(path);
    const top = y;
    const bars = shown.map((cell) => {
      const entry = figure(cell.groups.find((group) => JSON.stringify(group.path) === path));
      if (!entry) return null;
      const at = y;
      y += bar + 2;
      return svg("g", { class: seriesOf(cell.run, cell.endpoint).color },
        svg("rect", { class: "bar", x: left, y: at, width: Math.max(1, x(entry.value) - left), height: bar, rx: 1.5 }),
        known(entry.low) && svg("line", { class: "whisker", x1: x(entry.low), x2: x(entry.high), y1: at + bar / 2, y2: at + bar / 2 }),
        label(width - 4, at + bar - 1, `${percent(entry.value)} · n ${entry.n}`, { "text-anchor": "end", class: "ink" }),
        svg("title", null, `${seriesOf(cell.run, cell.endpoint).name}, ${cut(names.join(" / "), 300)}: ${percent(entry.value)}`));
    });
    const middle = (top + y) / 2 + 3;
    y += gap;
    return [label(left - 12 , middle, cut((names.length > 1 ? "↳ " : "") + names.at(-1), 38), { "text-anchor": "end", class: names.length > 1 ? "" : "ink" }), bars];
  });
  return [legend(distinct(shown.map((cell) => seriesOf(cell.run, cell.endpoint)))),
    svg("svg", { viewBox: `0 0 ${width} ${y + 22}`, role: "img" }, across(x, 0, 1, 0, y, (at) => at * 100 + "%"), rows)];
}

function boxChart(rows, shape) {
  const left = 300, width = 900, line = 30, bottom = 6 + line * rows.length;
  const ends = rows.flatMap((row) => [row.box[0], row.box[4]]).concat(0);
  const low = Math.min(...ends), high = Math.max(...ends), pad = (high - low) * 0.05 || 1;
  const x = scale(low - pad, high + pad, left, width - 90);
  return svg("svg", { viewBox: `0 0 ${width} ${bottom + 26}`, role: "img" },
    across(x, low, high, 6, bottom, shape),
    svg("line", { class: "zero", x1: x(0), x2: x(0), y1: 6, y2: bottom }),
    rows.map((row, index) => {
      const y = 6 + line * (index + 0.5);
      const [least, lower, median, upper, largest] = row.box.map(x);
      return svg("g", { class: row.color },
        label(left - 12, y + 4, cut(row.name, 46), { "text-anchor": "end", class: "ink" }),
        svg("line", { class: "whisker", x1: least, x2: largest, y1: y, y2: y }),
        svg("rect", { class: "box", x: lower, y: y - 8, width: Math.max(1, upper - lower), height: 16 }),
        svg("line", { class: "whisker", x1: median, x2: median, y1: y - 8, y2: y + 8 }),
        label(width - 4, y + 4, `${shape(row.box[2])} · n ${row.n}`, { "text-anchor": "end", class: "ink" }),
        svg("title", null, `${row.name}: lowest, quartiles, highest ${row.box.map(shape).join(", ")}`));
    }));
}

// For each item, the mean latency under a condition less that under the first: boxes over items.
function differences(metric) {
  const column = trials[metric];
  const base = conditions.includes("clean") ? "clean" : conditions[0];
  const means = trials.cells.map(() => new Map());
  for (let row = 0; column && row < total; row += 1) {
    if (!known(column[row]) || !counted(row)) continue;
    const items = means[trials.cell[row]], one = items.get(trials.item[row]);
    if (one) { one.sum += column[row]; one.n += 1; } else items.set(trials.item[row], { sum: column[row], n: 1 });
  }
  return trials.cells.flatMap(([run, endpoint, suite, condition], cell) => {
    const clean = means[trials.cells.findIndex((one) => one[0] === run && one[1] === endpoint && one[2] === suite && one[3] === base)];
    if (condition === base || !clean) return [];
    const found = [];
    for (const [item, { sum, n }] of means[cell]) {
      const was = clean.get(item);
      if (was) found.push(sum / n - was.sum / was.n);
    }
    if (!found.length) return [];
    found.sort((a, b) => a - b);
    return [{ name: `${cellSeries[cell].name}  ${suites.length > 1 ? suite + " · " : ""}${condition} − ${base}`, color: cellSeries[cell].color, n: found.length,
      box: [0, 0.25, 0.5, 0.75, 1].map((share) => quantile(found, share)) }];
  });
}

function gapChart() {
  const rows = cells.flatMap((cell) => Object.entries(cell.metrics)
    .filter(([name, entry]) => name.startsWith("position_gap:") && known(entry.value))
    .map(([name, entry]) => ({ name: `${name.slice(13)}: ${seriesOf(cell.run, cell.endpoint).name}  ${place(cell)}`, color: seriesOf(cell.run, cell.endpoint).color, entry })));
  if (!rows.length) return null;
  const most = Math.max(0.5, ...rows.flatMap((row) => ["value", "low", "high"].map((end) => Math.abs(row.entry[end] || 0))));
  return forest(rows, -most, most, (value) => plain(Number(value.toFixed(3))), true);
}
