"""A voice agent as users of pipecat write it, in which only what needs weights is played.

Genuine are transport, serializer, Silero VAD, turn taking, RTVI and the pacing of the output.
Played are the recogniser (it hears one sentence whatever was said), the model (it repeats what it
was told since it spoke last) and the voice (it plays a file).

Run as: pipecat_server.py FILE.wav [single]. Without `single` it takes any number of sessions on
/ws; `?greet=1` lets it speak first, `?fail=1` makes the model fail, `?plain=1` leaves RTVI out.
"""

import asyncio
import socket
import sys
import wave

import uvicorn
from fastapi import FastAPI, WebSocket
from pipecat.audio.vad.silero import SileroVADAnalyzer
from pipecat.frames.frames import (
    LLMContextFrame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    LLMTextFrame,
    TranscriptionFrame,
    TTSAudioRawFrame,
    TTSSpeakFrame,
)
from pipecat.metrics.metrics import LLMTokenUsage
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineParams, PipelineWorker
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import (
    LLMContextAggregatorPair,
    LLMUserAggregatorParams,
)
from pipecat.serializers.protobuf import ProtobufFrameSerializer
from pipecat.services.llm_service import LLMService
from pipecat.services.stt_service import SegmentedSTTService
from pipecat.services.tts_service import TTSService
from pipecat.transports.websocket.fastapi import FastAPIWebsocketParams, FastAPIWebsocketTransport
from pipecat.transports.websocket.server import (
    SingleClientWebsocketServerParams,
    SingleClientWebsocketServerTransport,
)
from pipecat.turns.user_stop import SpeechTimeoutUserTurnStopStrategy
from pipecat.turns.user_turn_strategies import UserTurnStrategies
from pipecat.utils.time import time_now_iso8601
from pipecat.workers.runner import WorkerRunner

RATE = 24000


class Ears(SegmentedSTTService):
    """A recogniser that hears the same sentence in everything."""

    def can_generate_metrics(self):
        return True

    async def run_stt(self, audio):
        yield TranscriptionFrame("what was spoken", "", time_now_iso8601())


class Mind(LLMService):
    """A model that repeats what it was told since it spoke last."""

    def __init__(self, *, fails):
        super().__init__()
        self.fails = fails

    def can_generate_metrics(self):
        return True

    async def process_frame(self, frame, direction):
        await super().process_frame(frame, direction)
        if not isinstance(frame, LLMContextFrame):
            await self.push_frame(frame, direction)
        elif self.fails:
            await self.push_error("the model is out of memory")
        else:
            await self.answer(frame.context.get_messages())

    async def answer(self, messages):
        told = []
        for message in messages:
            told = [] if message["role"] == "assistant" else [*told, message["content"]]
        await self.start_ttfb_metrics()
        await self.push_frame(LLMFullResponseStartFrame())
        for piece in ("I was told: ", " and ".join(told), "."):
            await self.stop_ttfb_metrics()
            await self.push_frame(LLMTextFrame(piece))
        usage = LLMTokenUsage(prompt_tokens=len(messages), completion_tokens=3, total_tokens=0)
        await self.start_llm_usage_metrics(usage)
        await self.push_frame(LLMFullResponseEndFrame())


class Voice(TTSService):
    """A voice that plays a file, whatever it is to say."""

    def __init__(self, pcm):
        super().__init__(push_start_frame=True, push_stop_frames=True)
        self.pcm = pcm

    def can_generate_metrics(self):
        return True

    async def run_tts(self, text, context_id):
        await self.start_tts_usage_metrics(text)
        await self.stop_ttfb_metrics()
        yield TTSAudioRawFrame(self.pcm, RATE, 1, context_id=context_id)


async def talk(transport, pcm, *, greet=False, fails=False, plain=False):
    """Run one agent on a transport until it is cancelled or its client has left."""
    user = LLMUserAggregatorParams(
        vad_analyzer=SileroVADAnalyzer(),
        user_turn_strategies=UserTurnStrategies(stop=[SpeechTimeoutUserTurnStopStrategy()]),
    )
    listening, speaking = LLMContextAggregatorPair(LLMContext(), user_params=user)
    steps = [Ears(), listening, Mind(fails=fails), Voice(pcm)]
    pipeline = Pipeline([transport.input(), *steps, transport.output(), speaking])
    worker = PipelineWorker(
        pipeline,
        params=PipelineParams(
            audio_out_sample_rate=RATE, enable_metrics=True, enable_usage_metrics=True
        ),
        enable_rtvi=not plain,
        idle_timeout_secs=None,
    )

    @transport.event_handler("on_client_connected")
    async def on_client_connected(_transport, _websocket):
        if greet:
            await worker.queue_frames([TTSSpeakFrame("Hello there.")])

    @transport.event_handler("on_client_disconnected")
    async def on_client_disconnected(_transport, _websocket):
        if not isinstance(transport, SingleClientWebsocketServerTransport):
            await worker.cancel()

    runner = WorkerRunner(handle_sigint=False)
    await runner.add_workers(worker)
    await runner.run()


def many(pcm):
    """Serve any number of sessions, an agent each."""
    app = FastAPI()

    @app.websocket("/ws")
    async def session(websocket: WebSocket):
        await websocket.accept()
        asked = websocket.query_params
        params = FastAPIWebsocketParams(**SPEAKS)
        transport = FastAPIWebsocketTransport(websocket, params)
        modes = {"greet": "greet" in asked, "fails": "fail" in asked, "plain": "plain" in asked}
        await talk(transport, pcm, **modes)

    uvicorn.run(app, host="127.0.0.1", port=0)


async def single(pcm):
    """Serve one session at a time, all of them the same agent."""
    with socket.create_server(("127.0.0.1", 0)) as free:  # it does not tell which port 0 became
        port = free.getsockname()[1]
    params = SingleClientWebsocketServerParams(**SPEAKS)
    transport = SingleClientWebsocketServerTransport(params, "127.0.0.1", port)

    @transport.event_handler("on_websocket_ready")
    async def on_websocket_ready(_transport):
        print(f"ready on port {port}")

    await talk(transport, pcm)


SPEAKS = {
    "serializer": ProtobufFrameSerializer(),
    "audio_in_enabled": True,
    "audio_out_enabled": True,
}

if __name__ == "__main__":
    with wave.open(sys.argv[1]) as file:
        said = file.readframes(file.getnframes())
    if "single" in sys.argv:
        asyncio.run(single(said))
    else:
        many(said)
