// One trial: its timeline, its sound, its words and how they were judged.
const sheet = document.getElementById("trial");
const loaded = new Map();
const waiting = new Map();

// The script files beside the page call this with their number and content.
window.voxmeterDetails = (stamp, number, text) => {
  const act = waiting.get(number);
  waiting.delete(number);
  if (stamp !== data.stamp) { act && act(null, "The files beside this page are of another report: write it again with voxmeter report."); return; }
  loaded.set(number, JSON.parse(text));
  if (act) act(loaded.get(number));
};

function details(row, act) {
  if (data.details) { act(data.details[row]); return; }
  const number = Math.floor(row / data.a_file), at = row % data.a_file;
  if (loaded.has(number)) { act(loaded.get(number)[at]); return; }
  waiting.set(number, (found, problem) => act(found && found[at], problem));
  const script = document.createElement("script");
  script.src = data.folder.split("/").map(encodeURIComponent).join("/") + "/" + String(number).padStart(3, "0") + ".js";
  script.addEventListener("error", () => act(null, `${script.getAttribute("src")} is missing: it belongs beside this page.`));
  document.head.append(script);
}

function wave(text, x, from, ms, middle, half, kind) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const step = ms / bytes.length;
  let up = "", down = "";
  bytes.forEach((byte, index) => {
    if (index * step < from) return;
    const at = x(index * step).toFixed(1), tall = Math.max(0.4, (byte / 255) * half);
    up += `L${at} ${(middle - tall).toFixed(1)}`;
    down = `L${at} ${(middle + tall).toFixed(1)}` + down;
  });
  return svg("path", { class: kind, d: "M" + up.slice(1) + down + "Z" });
}

const MARKS = { speech_end: "speech ends", text: "first text", packet: "first packet", audible: "first audible", endpointing: "server: user stopped", end: "reply ends" };

function timeline(found, from) {
  const { marks = {}, stalls = [], deltas = [] } = found.timeline;
  const ms = Math.max(found.ms || 0, ...Object.values(marks), ...deltas) * 1.01;
  if (!ms) return null;
  const width = 1160, left = 56, top = 84, half = 38, gap = 14;
  const x = scale(from, ms, left, width - 10);
  const user = top + half, reply = user + 2 * half + gap, bottom = reply + half;
  const shown = Object.entries(marks).filter(([, at]) => at >= from).sort((a, b) => a[1] - b[1]);
  const ends = [];
  const labels = shown.map(([name, at]) => {
    const called = name === "speech_end" && found.timeline.sent ? "question sent" : MARKS[name];
    const text = `${called}  ${name === "speech_end" ? "t0" : "+" + whole(at - marks.speech_end)}`.replace("+-", "−");
    const long = text.length * 6.4;
    const start = Math.min(x(at), width - 10 - long);
    let level = ends.findIndex((end) => start > end + 8);
    if (level < 0) level = ends.length;
    ends[level] = start + long;
    const y = top - 12 - level * 16;
    const main = name === "speech_end" || name === "audible";
    return { line: svg("line", { class: "mark-line" + (main ? " main" : ""), x1: x(at), x2: x(at), y1: y + 4, y2: bottom }),
      text: label(start, y, text, { class: main ? "ink" : "" }) };
  });
  const playhead = svg("line", { class: "playhead", x1: left, x2: left, y1: top, y2: bottom, visibility: "hidden" });
  const picture = svg("svg", { viewBox: `0 0 ${width} ${bottom + 46}`, class: "timeline", role: "img", "aria-label": "Timeline" },
    [user, reply].map((middle) => svg("rect", { class: "lane", x: left, y: middle - half, width: width - 10 - left, height: 2 * half, rx: 3 })),
    known(marks.speech_end) && known(marks.audible) && marks.audible > marks.speech_end
      && svg("rect", { class: "wait", x: x(marks.speech_end), y: top, width: x(marks.audible) - x(marks.speech_end), height: bottom - top }),
    label(left - 8, user + 4, "user", { "text-anchor": "end", class: "ink" }), label(left - 8, reply + 4, "reply", { "text-anchor": "end", class: "ink" }),
    found.peaks && wave(found.peaks[0], x, from, found.ms, user, half - 3, "wave-user"),
    found.peaks && found.peaks.length > 1 && wave(found.peaks[1], x, from, found.ms, reply, half - 3, "wave-reply"),
    stalls.map(([from, to]) => svg("rect", { class: "stall", x: x(from), y: reply - half, width: Math.max(1.5, x(to) - x(from)), height: 2 * half },
      svg("title", null, `stall of ${asMs(to - from)}`))),
    deltas.filter((at) => at >= from).map((at) => svg("line", { class: "delta", x1: x(at), x2: x(at), y1: bottom + 3, y2: bottom + 10 })),
    ticks(from / 1000, ms / 1000, 10).map((at) => label(x(at * 1000), bottom + 28, `${plain(at)} s`, { "text-anchor": "middle" })),
    labels.map((one) => one.line), labels.map((one) => one.text), playhead);
  return { picture, playhead, x, back: (at) => Math.max(from, from + ((at - left) / (width - 10 - left)) * (ms - from)), width };
}

// A text that would take a browser seconds to lay out is cut, with a button for the rest.
const LONG = 4000;
function long(text, end) {
  if (typeof text !== "string" || text.length <= LONG) return text;
  const holder = el("span", null);
  const more = el("button", { type: "button", onclick: () => holder.replaceChildren(text) }, `all ${whole(text.length)} letters`);
  holder.append(...(end ? [more, " …", text.slice(-LONG)] : [text.slice(0, LONG), "… ", more]));
  return holder;
}
const fact = (name, value) => (known(value) && value !== "" ? [el("dt", { title: meant(name) }, name), el("dd", null, long(value))] : null);
const words = (value) => {
  if (typeof value === "number") return plain(value);
  if (Array.isArray(value)) return value.map(words).join(", ") || "none";
  if (value && typeof value === "object") return Object.entries(value).filter(([, one]) => known(one)).map(([name, one]) => `${name} ${words(one)}`).join(", ");
  return String(value);
};

// The timeline with its sound; a long question can be left out, so that the wait is seen closely.
function heard(found) {
  const holder = el("div", null);
  const end = (found.timeline.marks || {}).speech_end || 0;
  const line = {};
  const draw = (from) => {
    Object.assign(line, timeline(found, from));
    if (line.picture) holder.replaceChildren(line.picture);
  };
  draw(0);
  if (!line.picture) return [null, sound(found, null)];
  const near = el("button", { type: "button", "aria-pressed": "false", id: "near", onclick: () => {
    const on = near.getAttribute("aria-pressed") !== "true";
    near.setAttribute("aria-pressed", String(on));
    near.textContent = on ? "Whole trial" : "From the end of speech";
    draw(on ? Math.max(0, end - 300) : 0);
  } }, "From the end of speech");
  return [[end > 500 && el("div", { class: "controls" }, near), holder], sound(found, line, holder)];
}

const decoded = (address) => { try { return decodeURIComponent(address); } catch { return address; } };

function sound(found, line, holder) {
  if (!found.audio && !found.reply) return el("p", { class: "note" }, found.damaged ? "The recording of this trial is damaged." : "No recording of this trial was kept.");
  const player = (src, name) => src && el("audio", { controls: true, preload: "none", src, "aria-label": name, onerror: (event) =>
    event.target.replaceWith(el("p", { class: "note bad" }, src.startsWith("data:") ? "This browser cannot play FLAC." : `${decoded(src)} is not there or cannot be played: the run folder belongs where it lay when this page was written.`)) });
  const both = player(found.audio, "Both sides"), reply = player(found.reply, "The reply alone");
  if (both && line) {
    both.addEventListener("timeupdate", () => {
      const at = line.x(both.currentTime * 1000);
      line.playhead.setAttribute("x1", at);
      line.playhead.setAttribute("x2", at);
      line.playhead.setAttribute("visibility", "visible");
    });
    holder.addEventListener("click", (event) => {
      const box = line.picture.getBoundingClientRect();
      both.currentTime = line.back(((event.clientX - box.left) / box.width) * line.width) / 1000;
      both.play();
    });
  }
  // A player knows its length only once it plays.
  const lasting = (ms) => (known(ms) ? `, ${(ms / 1000).toFixed(1)} s` : "");
  return el("div", { class: "pair players" },
    both && el("div", null, el("h3", null, `Both sides (left: user, right: reply)${lasting(found.ms)}`), both),
    reply && el("div", null, el("h3", null, `The reply alone, without gaps${lasting(found.latency.reply_ms)}`), reply));
}

function judged(one) {
  const gave = known(one.value) ? (one.metric === "judge_accuracy" ? ["wrong", "right"][one.value] || plain(one.value) : plain(one.value)) : one.unscored || "–";
  return [fact(`${one.judge} (${one.metric.replace("_", " ")})`, gave),
    one.orders.map((order) => fact(cut(order.order || "reply", 60), [known(order.value) ? plain(order.value) + ": " : "", order.reason ? [long(order.reason), ": "] : "", long(order.replies.join("\n"))]))];
}

function shownTrial(row, found) {
  const [picture, player] = heard(found);
  const [before, answer, after] = found.read;
  const right = trials.right[row];
  const reply = found.heard || found.wrote;
  const other = found.heard && found.wrote && found.heard !== found.wrote ? found.wrote : "";
  return [
    el("div", { class: "card" }, picture, el("p", { class: "note" },
      found.timeline.sent ? "This endpoint got the whole question at once: t0 is when it was sent, and both lanes begin there. " : "Times are milliseconds from t0, the end of the user's speech. ",
      "The shaded stretch is what the user waited; dark red in the reply is a stall; ticks below are text as it came. Click to hear from there."), player),
    el("div", { class: "pair" },
      el("div", { class: "card" }, el("h3", null, "Question"), el("p", { class: "said" }, long(found.question) || "(only spoken)"),
        found.options.length > 0 && el("p", { class: "note" }, long(found.options.map((one, index) => `${String.fromCharCode(65 + index)}. ${one}`).join("   "))),
        el("h3", null, found.heard ? "Reply, as it was heard" : "Reply, as it was written"),
        el("p", { class: "said", id: "said" }, answer ? [long(before, true), el("mark", null, long(answer)), long(after)] : long(reply) || "(nothing)"),
        other && [el("h3", null, "The model's own text"), el("p", { class: "said" }, long(other))],
        el("dl", null, fact("right answer", found.reference), fact("answer found", found.answer),
          fact("verdict", known(right) ? el("span", { class: right ? "good" : "bad" }, right ? "right" : "wrong") : null),
          fact("rule", found.rule), fact("not scored", found.unscored), fact("heard by", found.recogniser), found.judges.map(judged))),
      el("div", { class: "card" }, el("h3", null, "Times and conditions"),
        el("dl", null, fact("status", statusOf(row)), fact("fault", found.fault), fact("started", found.started_at),
          Object.entries(found.latency).map(([name, value]) => known(value) && fact(name, /_ms$/.test(name) ? value.toFixed(1) : plain(value))),
          Object.entries(found.condition).map(([name, value]) => fact(name, words(value))),
          Object.entries(found.audit).map(([name, value]) => fact(name, words(value))))))];
}

// While a trial is open the page behind it takes no key and no click; then the keys go back to where they were.
const behind = [document.getElementById("main"), document.getElementById("top")];
let cameFrom = null;

function openRow(row) {
  if (state.open < 0) cameFrom = document.activeElement;
  const held = document.activeElement && sheet.contains(document.activeElement) ? document.activeElement.id : "";
  state.open = row;
  const at = shownRows.indexOf(row);
  if (at >= 0) state.at = at;
  const [run, endpoint, suite, condition] = cellOf(row);
  const body = el("div", { id: "body" }, el("p", { class: "note" }, "…"));
  const go = (step) => el("button", { type: "button", id: step < 0 ? "before" : "after", "aria-label": step < 0 ? "The trial before" : "The next trial", onclick: () => step_(step) }, step < 0 ? "← k" : "j →");
  sheet.replaceChildren(el("div", null, el("div", { class: "bar-top" },
    el("h2", null, trials.item[row], " ", el("span", { class: "kind" }, [many && data.runs[run].letter, endpoint, suite, condition, "trial " + trials.trial[row]].filter(Boolean).join(" · "))),
    go(-1), go(1), el("button", { type: "button", id: "shut", onclick: closeTrial }, "Close (Esc)")), body));
  sheet.hidden = false;
  sheet.scrollTop = 0;
  document.body.classList.add("open");
  for (const part of behind) part.inert = true;
  (document.getElementById(held || "trial") || sheet).focus({ preventScroll: true });
  keepState();
  details(row, (found, problem) => {
    if (state.open !== row) return;
    body.replaceChildren(...(found ? shownTrial(row, found) : [el("p", { class: "note bad" }, problem || "Nothing is known of this trial.")]));
    sheet.dataset.ready = "true";
  });
}
function step_(step) {
  moveTo(state.at + step);
  if (shownRows.length) openRow(shownRows[state.at]);
}
function closeTrial() {
  state.open = -1;
  sheet.hidden = true;
  sheet.replaceChildren();
  document.body.classList.remove("open");
  for (const part of behind) part.inert = false;
  moveTo(state.at);
  keepState();
  const back = cameFrom && cameFrom.isConnected && cameFrom !== document.body ? cameFrom : list;
  cameFrom = null;
  back.focus({ preventScroll: true });
}
