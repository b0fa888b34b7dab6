// The last turns, one line each, all beginning where the user's speech ended.
const SVG = "http://www.w3.org/2000/svg";
const ROW = 38, LEFT = 64, SPOKEN = 44, RIGHT = 14;

function part(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function step(longest, room) {
  return [100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 60_000].find((one) => (longest / one) * 52 < room) ?? 60_000;
}

export function timeline(svg, turns) {
  const width = Math.max(280, svg.clientWidth), zero = LEFT + SPOKEN;
  const height = turns.length * ROW + 24;
  const longest = Math.max(1000, ...turns.flatMap((turn) => Object.values(turn.marks)));
  const x = (value) => zero + (Math.max(-1000, value) / longest) * (width - zero - RIGHT);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("height", height);
  const parts = [];
  const apart = step(longest, width - zero - RIGHT);
  for (let at = 0; at <= longest; at += apart) {
    parts.push(part("line", { class: at ? "grid" : "zero", x1: x(at), x2: x(at), y1: 0, y2: height - 20 }));
    parts.push(part("text", { x: x(at), y: height - 6, "text-anchor": "middle" }, at ? `${at / 1000} s` : "0"));
  }
  turns.forEach((turn, index) => parts.push(...line(turn, index * ROW, x, zero)));
  svg.replaceChildren(...parts);
}

function line(turn, y, x, zero) {
  const { first_packet: packet, first_audible: audible, reply_end: end } = turn.marks;
  const parts = [part("text", { x: 0, y: y + 22, class: "ink" }, `turn ${turn.turn}`)];
  parts.push(part("rect", { class: "user", x: LEFT, y: y + 8, width: zero - LEFT, height: 20 }));
  const bar = (name, from, until) => parts.push(part("rect", { class: name, x: Math.min(x(from), x(until)), y: y + 8, width: Math.max(1, Math.abs(x(until) - x(from))), height: 20 }));
  if (audible !== undefined) bar("wait", 0, audible);
  if (audible !== undefined && end !== undefined) bar("reply", audible, end);
  if (packet !== undefined) parts.push(part("line", { class: "packet", x1: x(packet), x2: x(packet), y1: y + 4, y2: y + 32 }));
  if (audible !== undefined) {
    parts.push(part("line", { class: "audible", x1: x(audible), x2: x(audible), y1: y + 4, y2: y + 32 }));
    parts.push(part("text", { class: "label", x: x(audible) + 4, y: y + 22 }, `${Math.round(audible)} ms`));
  } else if (turn.status) parts.push(part("text", { class: "label", x: zero + 6, y: y + 22 }, turn.status.replaceAll("_", " ")));
  return parts;
}
