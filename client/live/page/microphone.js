// Runs where the browser handles sound: 20 ms of the microphone at a time, with the time of the first sample.
const SAMPLES = 960;

class Microphone extends AudioWorkletProcessor {
  constructor() {
    super();
    this.number = 0;
    this.begin();
  }

  begin() {
    this.pcm = new Int16Array(SAMPLES);
    this.filled = 0;
    this.square = 0;
  }

  process([input]) {
    const channel = input[0];
    if (!channel) {
      if (this.filled) this.begin(); // what a device gave before it went is not joined to another's
      return true;
    }
    for (let index = 0; index < channel.length; index += 1) {
      if (this.filled === 0) this.starts = (currentFrame + index) / sampleRate;
      const value = channel[index];
      this.pcm[this.filled] = Math.max(-32768, Math.min(32767, Math.round(value * 32768)));
      this.square += value * value;
      this.filled += 1;
      if (this.filled === SAMPLES) this.hand();
    }
    return true;
  }

  hand() {
    const level = 10 * Math.log10(this.square / SAMPLES + 1e-10);
    this.port.postMessage({ number: this.number, starts: this.starts, level, pcm: this.pcm.buffer }, [this.pcm.buffer]);
    this.number += 1;
    this.begin();
  }
}

registerProcessor("microphone", Microphone);
