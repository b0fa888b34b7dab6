// Microphone and speaker: opened on request, stamped by the clock of the page's sound.
export const RATE = 48_000;
const OUTPUTS = 200;
const KINDS = { echoCancellation: "echo cancellation", noiseSuppression: "noise suppression", autoGainControl: "gain control" };

export class Audio {
  // `frame` gets every block of the microphone, `played` reports, `underrun` samples, `lost` why a device is gone.
  constructor(told) {
    this.told = told;
    this.context = null;
    this.stream = null;
    this.source = null;
    this.outputs = [];
    this.underruns = 0;
  }

  // Ask for a microphone and begin; throws what the browser throws, with `stage` on it.
  async open({ microphone, comfort }) {
    if (!globalThis.isSecureContext || !navigator.mediaDevices) throw staged(new Error("insecure"), "insecure");
    if (!globalThis.AudioContext || !globalThis.AudioWorkletNode) throw staged(new Error("no AudioWorklet"), "worklet");
    const stream = await navigator.mediaDevices.getUserMedia({ audio: wanted(microphone, comfort) });
    try {
      await this.start();
      const source = this.context.createMediaStreamSource(stream);
      this.release();
      this.source = source;
    } catch (error) {
      stream.getTracks().forEach((track) => track.stop());
      throw error.stage ? error : staged(error, "worklet");
    }
    this.stream = stream;
    this.source.connect(this.microphone);
    const [track] = stream.getAudioTracks();
    track.onended = () => this.told.lost("the microphone was unplugged or taken away");
    return this.facts();
  }

  // Take the same microphone anew. When its sound stands still, a browser holds back what the microphone gives, and is
  // late by that from then on, which nobody can see.
  reopen() {
    if (!this.stream) return;
    this.source.disconnect();
    this.source = this.context.createMediaStreamSource(this.stream);
    this.source.connect(this.microphone);
  }

  async start() {
    if (this.context) return this.context.resume();
    const context = new AudioContext({ sampleRate: RATE, latencyHint: "interactive" });
    try {
      await Promise.all(["microphone.js", "speaker.js"].map((name) => context.audioWorklet.addModule(name)));
      await context.resume();
    } catch (error) {
      await context.close();
      throw staged(error, "worklet");
    }
    this.context = context;
    this.outputs = [];
    context.onstatechange = () => { if (context.state !== "running" && this.stream) this.told.lost(`the browser stopped its sound (${context.state})`); };
    this.microphone = new AudioWorkletNode(context, "microphone", { numberOfOutputs: 0, channelCount: 1, channelCountMode: "explicit" });
    this.speaker = new AudioWorkletNode(context, "speaker", { numberOfInputs: 0, outputChannelCount: [1] });
    this.speaker.connect(context.destination);
    this.microphone.port.onmessage = ({ data }) => {
      const now = performance.now();
      if (this.context !== context) return; // closed meanwhile
      this.noteOutput();
      this.told.frame(data, now);
    };
    this.speaker.port.onmessage = ({ data }) => {
      if (this.context !== context) return;
      if (data.underrun) { this.underruns += 1; this.told.underrun(data.underrun); } else this.told.played(data, this.outputTime(data.starts));
    };
    for (const node of [this.microphone, this.speaker]) node.onprocessorerror = () => this.told.lost("the page's sound failed");
  }

  // When the sample at `starts` on the sound's clock is heard on the page's, as a pair of such times near to it, and what
  // the browser says of that way. The browser has the latency of its output in the pair already.
  outputTime(starts) {
    this.noteOutput();
    const latency = this.context.outputLatency;
    const near = this.outputs.reduce((best, one) => (Math.abs(one.context_s - starts) < Math.abs(best.context_s - starts) ? one : best),
      this.outputs[0] ?? { context_s: this.context.currentTime, page_ms: performance.now() + 1e3 * (latency || this.context.baseLatency || 0) });
    return { ...near, output_latency_ms: latency > 0 ? 1e3 * latency : null };
  }

  // Pairs are kept for some seconds: one from behind a moment at which the sound stood still says nothing of what was before.
  noteOutput() {
    const { contextTime, performanceTime } = this.context.getOutputTimestamp();
    if (!(contextTime > 0 && performanceTime > 0) || this.outputs.at(-1)?.context_s === contextTime) return;
    this.outputs.push({ context_s: contextTime, page_ms: performanceTime });
    if (this.outputs.length > OUTPUTS) this.outputs.shift();
  }

  facts() {
    const [track] = this.stream.getAudioTracks();
    const settings = track.getSettings();
    return {
      microphone: track.label || "microphone",
      speaker: this.speakerName || "the browser's speaker",
      input_latency_ms: Number.isFinite(settings.latency) ? 1e3 * settings.latency : null,
      output_latency_ms: this.context.outputLatency > 0 ? 1e3 * this.context.outputLatency : null, // 0: not known yet
      processing: Object.keys(KINDS).filter((name) => settings[name]).map((name) => KINDS[name]),
      rate: settings.sampleRate ?? null,
    };
  }

  play(position, pcm) { this.speaker?.port.postMessage({ position, pcm }, [pcm]); }

  clear() { this.speaker?.port.postMessage({ clear: true }); }

  get choosesSpeaker() { return "setSinkId" in globalThis.AudioContext.prototype; }

  async speakTo(id, name) {
    await this.context.setSinkId(id === "default" ? "" : id);
    this.speakerName = name;
  }

  async devices() {
    const found = await navigator.mediaDevices.enumerateDevices();
    return { microphones: found.filter((one) => one.kind === "audioinput"), speakers: found.filter((one) => one.kind === "audiooutput") };
  }

  release() {
    this.source?.disconnect();
    this.stream?.getTracks().forEach((track) => { track.onended = null; track.stop(); });
    this.source = this.stream = null;
  }

  async close() {
    this.release();
    const context = this.context;
    this.context = null;
    await context?.close();
  }
}

function wanted(microphone, comfort) {
  const settings = { channelCount: 1, echoCancellation: comfort, noiseSuppression: comfort, autoGainControl: comfort };
  if (microphone) settings.deviceId = { exact: microphone };
  return settings;
}

function staged(error, stage) {
  return Object.assign(error, { stage });
}
