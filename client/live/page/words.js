// The sentences of the page, and how figures are written.
export const NO_MICROPHONE = {
  insecure: ["The browser gives no microphone to this address", "It does so on 127.0.0.1, localhost and https only. Open the address that the program printed, on the machine that it runs on."],
  worklet: ["The browser cannot handle the sound", "This page needs AudioWorklet at 48 kHz. Take a recent Chromium, Chrome or Edge."],
  NotAllowedError: ["The microphone is not allowed", "Allow it for this page: by the sign left of the address, and in the system's own settings for privacy. Then try again."],
  NotFoundError: ["There is no microphone", "Plug one in, or switch it on in the system's settings for sound. Then try again."],
  NotReadableError: ["The microphone cannot be opened", "Another program may have it for itself, or the system refuses it. Close what else uses it. Then try again."],
  OverconstrainedError: ["The chosen microphone is gone", "Choose another one below, or plug it in again. Then try again."],
};
export const OTHER_FAULT = ["The microphone cannot be opened", "The browser says: "];

export const GONE = {
  4000: ["The session is over", "What was said is saved. Start again for another one."],
  4001: ["Another tab has taken over", "What was said here is saved. This tab can take over again."],
  4002: ["The session could not go on", "The last line below says why, and the program has ended. What it could save is saved."],
  1001: ["The program has ended", "What was said is saved. Start `voxmeter live --web` again, and open the address that it prints."],
  1008: ["The program sent this page away", ""],
  1013: ["Too many tabs are open", "Close some of them, and load this page again."],
};
export const GONE_OTHERWISE = ["The program is gone", "It has ended, or cannot be reached. If it still runs in its terminal, connect again; otherwise start `voxmeter live --web` again, and open the address that it prints."];

export const PHASES = { ready: "ready", connecting: "connecting", listening: "listening", user: "you speak", waiting: "waiting", reply: "reply", disconnected: "no connection", "no-device": "no sound", ended: "over" };

export const ms = (value) => (value === null || value === undefined || !Number.isFinite(value) ? "–" : `${Math.round(value)}`);
export const named = (metric) => metric.replace(/_ms$/, "").replaceAll("_", " ");
export const decibels = (value) => (value <= -90 ? "silent" : `${Math.round(value)} dB`);
