// The page of a live session: what is shown, and what its buttons do. Text is only ever set as text.
import { Audio } from "./audio.js";
import { timeline } from "./draw.js";
import { Link } from "./link.js";
import { GONE, GONE_OTHERWISE, NO_MICROPHONE, OTHER_FAULT, PHASES, decibels, ms, named } from "./words.js";

const KEYS = { m: "mute", i: "interrupt", c: "next-condition", s: "save", q: "stop" };
const QUIET = -50; // dB
const SHOWN_TURNS = 6, SHOWN_NOTICES = 6, SHOWN_WORDS = 200;
const at = (id) => document.getElementById(id);

let link = null;
let session = false; // whether the program talks to the endpoint for this page
let turns = [];
let figures = {};
let last = null;
let levels = { user: -90, reply: -90 };
const meters = { user: -90, reply: -90 };
let replyUntil = 0;
let reopening = false; // at the next moment at which the user is quiet

const audio = new Audio({
  frame: (data, now) => {
    levels.user = data.level;
    if (reopening && data.level < QUIET) {
      reopening = false;
      audio.reopen();
    }
    if (session) link.frame(data.number, data.starts, now, data.pcm);
  },
  played: ({ position, samples, starts, level }, time) => {
    levels.reply = level;
    replyUntil = performance.now() + 150;
    link?.say({ type: "played", stretches: [[position, samples, starts]], ...time });
  },
  underrun: (samples) => link?.say({ type: "underrun", samples }),
  lost: (why) => {
    link?.say({ type: "device-gone", why });
    phase("no-device");
    gate(["The sound is gone", `${capital(why)}. The session goes on without it.`], "Open it again", () => openAudio(), true);
  },
});

function capital(text) { return text.charAt(0).toUpperCase() + text.slice(1); }

function gate([title, text], button, act, bad = false) {
  at("gate").hidden = false;
  at("gate").classList.toggle("bad", bad);
  at("gate-title").textContent = title;
  at("gate-text").textContent = text;
  at("gate-button").hidden = !button;
  at("gate-button").textContent = button ?? "";
  at("gate-button").onclick = act ?? null;
}

function phase(name) {
  at("phase").textContent = PHASES[name] ?? name;
  at("phase").dataset.phase = name;
}

function connect() {
  session = false;
  gate(["Connecting", "The page is looking for the program that served it."]);
  phase("connecting");
  const mine = new Link({
    heard: (message) => { if (mine === link) heard(message); },
    sound: (position, pcm) => audio.play(position, pcm),
    gone: (code, reason) => { if (mine === link) gone(code, reason); },
  });
  link = mine;
}

function gone(code, reason) {
  const running = session;
  session = false;
  buttons();
  audio.clear();
  audio.close();
  phase("ended");
  const [title, text] = GONE[code] ?? GONE_OTHERWISE;
  const said = code === 1008 ? reason : running && !GONE[code] ? `${text} What was said until now is saved by the program.` : text;
  const button = { 4000: "Start again", 4001: "Take over again", 4002: null, 1013: null }[code];
  gate([title, said], button === undefined ? "Connect again" : button, connect, code === 4002 || !(code in GONE));
}

async function openAudio() {
  at("gate-button").hidden = true;
  try {
    const facts = await audio.open({ microphone: at("microphones").value, comfort: at("comfort").checked });
    await showDevices();
    showFacts(facts);
    tellDevices(facts);
    if (session) at("gate").hidden = true;
    else gate(["Beginning", "The program connects to the endpoint."]);
  } catch (error) {
    const known = NO_MICROPHONE[error.stage ?? error.name];
    gate(known ?? [OTHER_FAULT[0], `${OTHER_FAULT[1]}${error.message}`], "Try again", openAudio, true);
  }
}

function tellDevices(facts) {
  const { rate: _, ...told } = facts;
  link?.say({ type: "devices", ...told });
}

async function showDevices() {
  const { microphones, speakers } = await audio.devices();
  choices(at("microphones"), microphones, audio.stream?.getAudioTracks()[0].getSettings().deviceId);
  at("speaker-choice").hidden = !audio.choosesSpeaker || speakers.length < 2;
  choices(at("speakers"), speakers, at("speakers").value || "default");
}

function choices(select, devices, chosen) {
  select.replaceChildren(...devices.map((device, index) => {
    const option = document.createElement("option");
    option.value = device.deviceId;
    option.textContent = device.label || `device ${index + 1}`;
    option.selected = device.deviceId === chosen;
    return option;
  }));
}

function showFacts(facts) {
  const parts = [facts.processing.length ? `the browser applies ${facts.processing.join(", ")}` : "the browser says that it changes nothing",
    facts.input_latency_ms === null ? "it does not say how late the microphone is" : `microphone ${ms(facts.input_latency_ms)} ms late by its own word`,
    facts.output_latency_ms === null ? "nor how late the speaker is" : `speaker ${ms(facts.output_latency_ms)} ms`];
  at("device-facts").textContent = `${facts.microphone}: ${parts.join("; ")}.`;
}

function heard(message) {
  match[message.type]?.(message);
}

const match = {
  occupied: () => gate(["Another tab is talking already", "Only one tab can. If this one takes over, what was said there is saved first."], "Use this tab", () => link.say({ type: "ask", name: "take-over" })),
  welcome: () => {
    phase("ready");
    gate(["Ready", "The browser will ask for your microphone. Wear a headset."], "Start talking", openAudio);
  },
  go: ({ endpoint, conditions, advice }) => {
    session = true;
    turns = [];
    last = null;
    figures = {};
    at("transcript").replaceChildren();
    at("notices").replaceChildren();
    at("nothing-said").hidden = false;
    at("endpoint").textContent = endpoint;
    at("condition").textContent = conditions[0] ?? "clean";
    at("next-condition").hidden = conditions.length < 2;
    at("gate").hidden = true;
    advice.forEach((text) => notice(text));
    muted(false);
    buttons();
    drawTurns();
    drawFigures();
  },
  phase: ({ phase: name, detail }) => { phase(name); if (detail && (name === "disconnected" || name === "ended")) notice(detail, true); },
  words,
  mark: ({ turn, name, ms: value }) => { if (value !== null) { turnOf(turn).marks[name] = value; drawTurns(); } },
  "turn-over": (message) => { turnOf(message.turn).status = message.status; last = message; drawTurns(); drawFigures(); },
  running: (message) => { figures = message.figures; drawFigures(); },
  notice: ({ text, serious }) => notice(text, serious),
  saved: ({ folder, turns: count, figures: read }) => {
    if (Object.keys(read).length) figures = read;
    notice(`Saved: ${count} ${count === 1 ? "turn" : "turns"} in ${folder}`);
    drawFigures();
  },
  condition: ({ name }) => { at("condition").textContent = name; },
  muted: ({ muted: now }) => muted(now),
  clear: () => audio.clear(),
  "reopen-microphone": () => { reopening = true; },
};

function turnOf(number) {
  let found = turns.find((turn) => turn.turn === number);
  if (!found) {
    found = { turn: number, marks: {}, status: "" };
    turns = [...turns, found].slice(-SHOWN_TURNS);
  }
  return found;
}

function words({ side, turn, text, whole }) {
  const key = `${side} ${turn}`;
  const list = at("transcript");
  let line = [...list.children].find((one) => one.dataset.key === key);
  if (!line) {
    line = document.createElement("li");
    line.dataset.key = key;
    line.className = side === "user" ? "user" : "reply";
    list.append(line);
    while (list.children.length > SHOWN_WORDS) list.firstElementChild.remove();
  }
  line.textContent = whole ? text : line.textContent + text;
  at("nothing-said").hidden = true;
  list.scrollTop = list.scrollHeight;
}

function notice(text, serious = false) {
  const line = document.createElement("li");
  line.textContent = text;
  line.classList.toggle("bad", serious);
  at("notices").append(line);
  while (at("notices").children.length > SHOWN_NOTICES) at("notices").firstElementChild.remove();
}

function muted(now) {
  at("mute").setAttribute("aria-pressed", String(now));
  at("mute").firstChild.textContent = now ? "Muted " : "Mute ";
}

function buttons() {
  for (const name of Object.values(KEYS)) at(name).disabled = !session;
}

function atServer(metric, value) {
  const { microphone, speaker } = last.paths;
  if (value === null || microphone === null) return null;
  if (metric === "first_packet_ms" || metric === "first_text_ms") return value - microphone;
  return metric === "first_audible_ms" && speaker !== null ? value - microphone - speaker : null;
}

function drawFigures() {
  const latency = last?.latency ?? {};
  const shown = ([metric, value]) => metric.endsWith("_ms") && value !== null;
  const metrics = [...new Set([...Object.entries(figures), ...Object.entries(latency)].filter(shown).map(([metric]) => metric))];
  at("figures").replaceChildren(...metrics.map((metric) => {
    const value = latency[metric] ?? null;
    const [n, p50, p90] = figures[metric] ?? [0, null, null];
    const row = document.createElement("tr");
    const cells = [named(metric), ms(value), last ? ms(atServer(metric, value)) : "–", ms(p50), ms(p90), String(n)];
    row.append(...cells.map((text, index) => {
      const cell = document.createElement("td");
      cell.textContent = text;
      if (index) cell.className = "n";
      return cell;
    }));
    return row;
  }));
  const paths = last?.paths;
  at("paths").textContent = paths && paths.microphone !== null
    ? `Ways, as the page sees them: microphone to server ${ms(paths.microphone)} ms, server to speaker ${ms(paths.speaker)} ms.` : "";
}

function drawTurns() { timeline(at("timeline"), turns); }

function drawLevels() {
  if (performance.now() > replyUntil) levels.reply = -90;
  for (const side of ["user", "reply"]) {
    const level = audio.stream || side === "reply" ? levels[side] : -90;
    const value = meters[side] = Math.max(level, meters[side] - 3); // falls slowly enough to be read
    const meter = at(`meter-${side}`);
    meter.firstElementChild.style.transform = `scaleX(${Math.max(0, Math.min(1, 1 + value / 60))})`;
    meter.setAttribute("aria-valuenow", String(Math.round(Math.max(-90, value))));
    at(`level-${side}`).textContent = decibels(value);
  }
  at("counts").textContent = `Underruns of the reply: ${audio.underruns}; blocks of the microphone dropped in the page: ${link?.dropped ?? 0}.`;
}

function ask(name) {
  if (!session) return;
  link.say({ type: "ask", name: name === "mute" && at("mute").getAttribute("aria-pressed") === "true" ? "unmute" : name });
}

async function changeDevices() {
  if (audio.stream) await openAudio();
}

Object.values(KEYS).forEach((name) => { at(name).onclick = () => ask(name); });
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || /^(SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
  const name = KEYS[event.key.toLowerCase()];
  if (name) ask(name);
});
at("microphones").onchange = changeDevices;
at("comfort").onchange = changeDevices;
at("speakers").onchange = async ({ target }) => {
  try {
    await audio.speakTo(target.value, target.selectedOptions[0].textContent);
    if (!audio.stream) return; // its name goes with the microphone, once there is one
    const { speaker, output_latency_ms } = audio.facts();
    link?.say({ type: "speaker", speaker, output_latency_ms });
  } catch (error) { notice(`The speaker cannot be changed: ${error.message}`, true); }
};
navigator.mediaDevices?.addEventListener("devicechange", () => { if (audio.stream) showDevices(); });
addEventListener("resize", drawTurns);
setInterval(drawLevels, 50);
buttons();
connect();
document.documentElement.dataset.ready = "true";
