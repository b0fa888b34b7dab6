"""The topics of Hermes (Rhasspy 2.5), and what stands on them: JSON in camelCase, or a WAV file."""

from __future__ import annotations

import json
from collections.abc import Mapping

from voxmeter.endpoints.codec import Json, Message, Published, Text
from voxmeter.endpoints.errors import ProtocolError
from voxmeter.endpoints.fields import Fields, parse_object
from voxmeter.endpoints.wav import WavReader, wav_file

PROTOCOL = "hermes"
RATE = 16_000
FRAME_MS = 64
"""1024 samples a frame at 16 kHz, as Rhasspy's own microphone sends them."""

START_SESSION = "hermes/dialogueManager/startSession"
END_SESSION = "hermes/dialogueManager/endSession"
SESSION_STARTED = "hermes/dialogueManager/sessionStarted"
SESSION_ENDED = "hermes/dialogueManager/sessionEnded"
SESSION_QUEUED = "hermes/dialogueManager/sessionQueued"
NOT_RECOGNIZED = "hermes/dialogueManager/intentNotRecognized"
START_LISTENING = "hermes/asr/startListening"
STOP_LISTENING = "hermes/asr/stopListening"
TEXT_CAPTURED = "hermes/asr/textCaptured"
SAY = "hermes/tts/say"
SAY_FINISHED = "hermes/tts/sayFinished"
INTENT = "hermes/intent/"
ERROR = "hermes/error/"


def audio_topic(site: str, kind: str) -> str:
    """Return the topic of a site's audio: `audioFrame`, `playBytes/<id>`, `playFinished`."""
    return f"hermes/audioServer/{site}/{kind}"


def detected_topic(wake_word: str) -> str:
    """Return the topic on which a wake word is told of."""
    return f"hermes/hotword/{wake_word}/detected"


def told(topic: str, fields: Mapping[str, Json]) -> Published:
    """Return a message of JSON; the broker is to confirm it."""
    return Published(topic, json.dumps(fields, ensure_ascii=True).encode(), sure=True)


def frame(topic: str, pcm: bytes, rate: int) -> Published:
    """Return audio as one whole WAV file of 16-bit mono samples; nobody confirms it."""
    return Published(topic, wav_file(pcm, rate))


def samples(message: Published) -> tuple[bytes, int]:
    """Return the 16-bit mono samples of a WAV file and their rate.

    The number of bytes is believed, and no size that stands in the file's head: a speech
    synthesizer that streams writes one before it knows it.

    Raises:
        ProtocolError: If it is no WAV file, or of an encoding that is not read.
    """
    reader = WavReader(PROTOCOL)
    pcm = reader.feed(message.payload)
    if reader.rate is None:
        raise ProtocolError(PROTOCOL, "not a whole WAV file", message)
    return pcm, reader.rate


def on_topic(message: Message) -> Published:
    """Return a message as one on a topic.

    Raises:
        ProtocolError: If it is none.
    """
    if not isinstance(message, Published):
        raise ProtocolError(PROTOCOL, "not a message on a topic", message)
    return message


def fields_of(message: Published) -> Fields:
    """Return the JSON object of a message.

    Raises:
        ProtocolError: If it is none.
    """
    try:
        words = message.payload.decode("utf-8")
    except UnicodeDecodeError:
        raise ProtocolError(PROTOCOL, "not UTF-8", message) from None
    try:
        return Fields(PROTOCOL, message, parse_object(PROTOCOL, Text(words)).data)
    except ProtocolError as error:
        raise ProtocolError(PROTOCOL, error.problem, message) from None
