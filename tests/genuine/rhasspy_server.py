"""Rhasspy's own dialogue manager, with speech services that are played.

The text of `customData` says how the skill behaves. Takes the broker's port.
"""

from __future__ import annotations

import asyncio
import io
import sys
import threading
import wave
from array import array

import paho.mqtt.client as mqtt
from rhasspydialogue_hermes import DialogueHermesMqtt
from rhasspyhermes.asr import AsrError, AsrStartListening, AsrTextCaptured
from rhasspyhermes.audioserver import AudioFrame, AudioPlayBytes, AudioPlayFinished
from rhasspyhermes.dialogue import DialogueContinueSession, DialogueEndSession
from rhasspyhermes.intent import Intent
from rhasspyhermes.nlu import NluIntent, NluIntentNotRecognized, NluQuery
from rhasspyhermes.tts import TtsSay, TtsSayFinished

RATE = 22_050
QUIET_S = 0.4
LOUD = 1000


class Services:
    """Speech recognition, understanding, a skill and speech synthesis."""

    def __init__(self, client: mqtt.Client) -> None:
        self._client = client
        self._hearing: dict[str, list] = {}  # site: session, whether it spoke, quiet so far
        self._saying: dict[str, TtsSay] = {}

    def publish(self, message, **where) -> None:
        self._client.publish(message.topic(**where), message.payload(), qos=1)

    def receive(self, client, userdata, message) -> None:
        topic, payload = message.topic, message.payload
        if AudioFrame.is_topic(topic):
            self.hear(AudioFrame.get_site_id(topic), payload)
        elif AudioPlayFinished.is_topic(topic):
            self.played(AudioPlayFinished.from_json(payload).id)
        elif topic == AsrStartListening.topic():
            told = AsrStartListening.from_json(payload)
            self._hearing[told.site_id] = [told.session_id, False, 0.0]
        elif topic == NluQuery.topic():
            self.understand(NluQuery.from_json(payload))
        elif topic == TtsSay.topic():
            self.say(TtsSay.from_json(payload))
        elif NluIntent.is_topic(topic):
            self.act(NluIntent.from_json(payload))

    def hear(self, site: str, payload: bytes) -> None:
        if site not in self._hearing:
            return
        with wave.open(io.BytesIO(payload)) as file:
            samples = array("h", file.readframes(file.getnframes()))
            seconds = len(samples) / file.getframerate()
        state = self._hearing[site]
        loud = max((abs(sample) for sample in samples), default=0) > LOUD
        state[1] = state[1] or loud
        state[2] = 0.0 if loud else state[2] + seconds
        if state[1] and state[2] >= QUIET_S:
            session, _, _ = self._hearing.pop(site)
            captured = AsrTextCaptured(
                text="what time is it\n",
                likelihood=1.0,
                seconds=0.1,
                site_id=site,
                session_id=session,
            )
            self.publish(captured)

    def understand(self, query: NluQuery) -> None:
        told = {"site_id": query.site_id, "session_id": query.session_id}
        if query.custom_data == "unknown":
            self.publish(NluIntentNotRecognized(input=query.input, **told))
            return
        if query.custom_data == "fail":
            self.publish(AsrError(error="no model", **told))
            return
        intent = Intent(intent_name="GetTime", confidence_score=1.0)
        found = NluIntent(
            input=query.input, intent=intent, custom_data=query.custom_data, id=query.id, **told
        )
        self.publish(found, intent_name="GetTime")

    def act(self, intent: NluIntent) -> None:
        way, session = intent.custom_data, intent.session_id
        if way == "forget":
            self.publish(TtsSay(text="It is noon.", site_id=intent.site_id, session_id=session))
        elif way == "go on":
            self.publish(DialogueContinueSession(session_id=session, text="Which city?"))
        else:
            self.publish(DialogueEndSession(session_id=session, text="It is noon."))

    def say(self, said: TtsSay) -> None:
        self._saying[said.id] = said
        pcm = array("h", [8000, -8000] * (RATE // 4)).tobytes()
        file = io.BytesIO()
        with wave.open(file, "wb") as written:
            written.setnchannels(1)
            written.setsampwidth(2)
            written.setframerate(RATE)
            written.writeframes(pcm)
        data = bytearray(file.getvalue())
        data[40:44] = (0x7FFFF000).to_bytes(4, "little")  # as a synthesizer that streams writes it
        topic = AudioPlayBytes.topic(site_id=said.site_id, request_id=said.id)
        self._client.publish(topic, bytes(data))

    def played(self, name: str) -> None:
        said = self._saying.pop(name, None)
        if said is not None:
            self.publish(
                TtsSayFinished(site_id=said.site_id, id=said.id, session_id=said.session_id)
            )


def main() -> None:
    port = int(sys.argv[1])
    subscribed = threading.Event()
    ours = mqtt.Client()
    services = Services(ours)
    ours.on_message = services.receive
    ours.on_subscribe = lambda *_: subscribed.set()
    ours.connect("127.0.0.1", port)
    ours.subscribe("hermes/#")
    ours.loop_start()
    subscribed.wait()
    managers = mqtt.Client()
    manager = DialogueHermesMqtt(managers, session_timeout=30)
    beginning = manager.mqtt_on_connect

    def connected(*told) -> None:
        beginning(*told)
        managers.on_subscribe = lambda *_: print(f"ready on port {port}", flush=True)

    managers.on_connect = connected
    managers.connect("127.0.0.1", port)
    managers.loop_start()
    asyncio.run(manager.handle_messages_async())


main()
