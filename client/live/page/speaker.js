// Runs where the browser handles sound: plays what is queued, and says which samples it put out when.
const REPORT = 2400; // samples: 50 ms
const PAUSE_S = 0.5; // an empty queue for longer is the end of a reply, not an underrun

class Speaker extends AudioWorkletProcessor {
  constructor() {
    super();
    this.queue = [];
    this.at = 0;
    this.stretch = null;
    this.emptySince = null;
    this.port.onmessage = ({ data }) => {
      if (data.clear) {
        this.queue = [];
        this.at = 0;
        this.emptySince = null;
      } else this.queue.push({ position: data.position, samples: new Int16Array(data.pcm) });
    };
  }

  process(_, [[left]]) {
    let filled = 0;
    while (filled < left.length && this.queue.length) filled += this.put(left, filled);
    left.fill(0, filled);
    if (filled < left.length) {
      this.report();
      if (this.emptySince === null && filled > 0) this.emptySince = currentFrame + filled;
    }
    return true;
  }

  put(left, filled) {
    const piece = this.queue[0];
    const position = piece.position + this.at;
    const count = Math.min(left.length - filled, piece.samples.length - this.at);
    this.resume(currentFrame + filled);
    if (this.stretch && this.stretch.position + this.stretch.samples !== position) this.report();
    if (!this.stretch) this.stretch = { position, samples: 0, starts: (currentFrame + filled) / sampleRate, square: 0 };
    for (let index = 0; index < count; index += 1) {
      const value = piece.samples[this.at + index] / 32768;
      left[filled + index] = value;
      this.stretch.square += value * value;
    }
    this.stretch.samples += count;
    this.at += count;
    if (this.at === piece.samples.length) {
      this.queue.shift();
      this.at = 0;
    }
    if (this.stretch.samples >= REPORT) this.report();
    return count;
  }

  resume(frame) {
    if (this.emptySince === null) return;
    const samples = frame - this.emptySince;
    this.emptySince = null;
    if (samples > 0 && samples < PAUSE_S * sampleRate) this.port.postMessage({ underrun: samples });
  }

  report() {
    if (!this.stretch) return;
    const { position, samples, starts, square } = this.stretch;
    this.port.postMessage({ position, samples, starts, level: 10 * Math.log10(square / samples + 1e-10) });
    this.stretch = null;
  }
}

registerProcessor("speaker", Speaker);
