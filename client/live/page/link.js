// The websocket to the program: frames and words out, sound and words in.
const HEADER = 24;
const MOST_WAITING = 200_000; // bytes: two seconds of the microphone; what comes on top is dropped, and counted there

export class Link {
  // `heard` gets every message of words, `sound` a position and its samples, `gone` a code.
  constructor({ heard, sound, gone }) {
    this.dropped = 0;
    const address = new URL("ws", location.href);
    address.protocol = "ws:";
    this.socket = new WebSocket(address);
    this.socket.binaryType = "arraybuffer";
    this.socket.onmessage = ({ data }) => {
      if (typeof data !== "string") {
        const view = new DataView(data);
        sound(view.getFloat64(8, true), data.slice(HEADER));
        return;
      }
      const now = performance.now();
      const message = JSON.parse(data);
      if (message.type === "ping") this.say({ type: "pong", number: message.number, page_ms: now });
      else heard(message);
    };
    this.socket.onclose = ({ code, reason }) => gone(code, reason);
  }

  get open() { return this.socket.readyState === WebSocket.OPEN; }

  say(message) {
    if (this.open) this.socket.send(JSON.stringify(message));
  }

  frame(number, starts, pageMs, pcm) {
    if (!this.open) return;
    if (this.socket.bufferedAmount > MOST_WAITING) {
      this.dropped += 1;
      return;
    }
    const message = new ArrayBuffer(HEADER + pcm.byteLength);
    const view = new DataView(message);
    view.setUint32(0, number, true);
    view.setUint32(4, pcm.byteLength / 2, true);
    view.setFloat64(8, starts, true);
    view.setFloat64(16, pageMs, true);
    new Uint8Array(message, HEADER).set(new Uint8Array(pcm));
    this.socket.send(message);
  }

  close() { this.socket.close(); }
}
