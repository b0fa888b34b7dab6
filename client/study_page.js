"use strict";
(() => {
  const study = JSON.parse(document.getElementById("data").textContent);
  const at = (id) => document.getElementById(id);
  const place = "voxmeter-study-" + study.study;
  const sides = ["a", "b"];
  let choices = {};
  let number = 0;
  let words = false;
  let since = Date.now();
  let heard = { a: false, b: false };

  try {
    const kept = JSON.parse(localStorage.getItem(place) || "{}");
    choices = kept.choices || {};
    at("rater").value = kept.rater || "";
  } catch { choices = {}; }
  const first = study.pairs.findIndex((pair) => !(pair.id in choices));
  number = first < 0 ? study.pairs.length : first;

  function keep() {
    try {
      localStorage.setItem(place, JSON.stringify({ choices, rater: at("rater").value }));
    } catch { /* a browser that keeps nothing for local files: saving still works */ }
  }

  function show() {
    const done = Object.keys(choices).length;
    const over = number >= study.pairs.length;
    at("count").textContent = over
      ? done + " of " + study.pairs.length + " answered"
      : number + 1 + " of " + study.pairs.length + ", " + done + " answered";
    at("card").hidden = over;
    at("end").hidden = !over;
    for (const side of sides) at("audio-" + side).pause();
    if (over) return;
    const pair = study.pairs[number];
    at("question").textContent = pair.question || "(only spoken)";
    at("referred").hidden = !pair.reference;
    at("reference").textContent = pair.reference;
    for (const side of sides) {
      const reply = pair[side];
      const audio = at("audio-" + side);
      audio.hidden = !reply.audio;
      if (reply.audio) audio.src = reply.audio; else audio.removeAttribute("src");
      const text = at("text-" + side);
      text.textContent = reply.text || "(nothing was understood)";
    }
    unfold();
    at("words").hidden = !sides.some((side) => pair[side].audio);
    const chosen = pair.id in choices ? choices[pair.id].choice : "";
    for (const name of ["a", "b", "tie"]) {
      at(name).setAttribute("aria-pressed", String(chosen === name));
    }
    since = Date.now();
    heard = { a: false, b: false };
  }

  function unfold() {
    if (number >= study.pairs.length) return;
    const pair = study.pairs[number];
    for (const side of sides) at("text-" + side).hidden = Boolean(pair[side].audio) && !words;
  }

  function move(step) {
    number = Math.max(0, Math.min(study.pairs.length, number + step));
    show();
  }

  function choose(choice) {
    if (number >= study.pairs.length) return;
    const pair = study.pairs[number];
    choices[pair.id] = { choice, ms: Date.now() - since, heard_a: heard.a, heard_b: heard.b };
    keep();
    move(1);
  }

  function play(side) {
    const audio = at("audio-" + side);
    if (audio.hidden) return;
    for (const other of sides) if (other !== side) at("audio-" + other).pause();
    if (audio.paused) audio.play(); else audio.pause();
  }

  function rows() {
    return study.pairs.filter((pair) => pair.id in choices)
      .map((pair) => ({ pair: pair.id, ...choices[pair.id] }));
  }

  function save(name, type, text) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    URL.revokeObjectURL(link.href);
  }

  function cell(value) {
    const text = String(value);
    const safe = /^[=+\-@\t\r]/.test(text) ? "'" + text : text;
    return '"' + safe.replaceAll('"', '""') + '"';
  }

  at("json").addEventListener("click", () => save(
    "preferences-" + study.study + ".json", "application/json",
    JSON.stringify({ study: study.study, rater: at("rater").value, preferences: rows() }, null, 1),
  ));
  at("csv").addEventListener("click", () => {
    const heads = ["study", "rater", "pair", "choice", "ms", "heard_a", "heard_b"];
    const lines = rows().map((row) => heads.map((head) => cell(
      head === "study" ? study.study : head === "rater" ? at("rater").value : row[head],
    )).join(","));
    save("preferences-" + study.study + ".csv", "text/csv", [heads.join(","), ...lines, ""].join("\n"));
  });
  for (const name of ["a", "b", "tie"]) at(name).addEventListener("click", () => choose(name));
  at("back").addEventListener("click", () => move(-1));
  at("next").addEventListener("click", () => move(1));
  at("words").addEventListener("click", () => { words = !words; unfold(); });
  at("rater").addEventListener("input", keep);
  for (const side of sides) {
    at("audio-" + side).addEventListener("play", () => { heard[side] = true; });
  }
  document.addEventListener("keydown", (event) => {
    if (event.target === at("rater") || event.ctrlKey || event.metaKey || event.altKey) return;
    const acts = {
      a: () => choose("a"), b: () => choose("b"), t: () => choose("tie"), "0": () => choose("tie"),
      "1": () => play("a"), "2": () => play("b"), s: () => { words = !words; unfold(); },
      arrowleft: () => move(-1), arrowright: () => move(1),
    };
    const act = acts[event.key.toLowerCase()];
    if (act) { event.preventDefault(); act(); }
  });
  show();
})();
