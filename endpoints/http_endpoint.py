"""Any server that takes a question in one HTTP request and answers with audio or words.

What is sent is a template, what comes back is read as told: nothing need be written in Python for a
server that somebody has put around a model.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from voxmeter.endpoints import http_template as template
from voxmeter.endpoints.codec import (
    Address,
    Json,
    Message,
    Request,
    Response,
    Settings,
    Step,
    Traits,
    Turn,
)
from voxmeter.endpoints.errors import UserError
from voxmeter.endpoints.events import Ready
from voxmeter.endpoints.http_exchange import Exchange, Reader, keyed, only_requests, unsaid
from voxmeter.endpoints.http_replies import (
    RATE,
    BareSamples,
    JsonBody,
    MixedBody,
    TextBody,
    WavBody,
)
from voxmeter.endpoints.json_path import Picker, Places
from voxmeter.endpoints.kind import HTTP, HTTP_HOST, Kind
from voxmeter.endpoints.mixed_replace import boundary_of
from voxmeter.endpoints.option_table import OptionTable
from voxmeter.endpoints.wav import wav_file

NAME = "http"
INPUT_RATE = 16_000
OPTIONS = {
    "json": "the request is JSON: a table with placeholders",
    "multipart": "the request is a form: a table of its fields, with placeholders",
    "raw": "the request is the audio alone: 'wav' (default) or 'pcm16'",
    "method": "'POST' (default), 'PUT' or 'PATCH'",
    "path": "path in place of the URL's own",
    "query": "a table that is added to the URL's query, with placeholders",
    "key_header": "header that carries the key, bare, in place of 'Authorization: Bearer KEY'",
    "reply": "how the answer is read: 'wav' (default), 'pcm16@RATE', 'mixed-replace', 'ndjson', "
    "'sse', 'json' or 'text'",
    "reply_audio": "where audio stands in a JSON answer, as a path like 'choices.0.audio'",
    "reply_text": "where words stand in it",
    "reply_error": "where a failure is told of in it (default 'error')",
    "reply_rate": "where the rate of the audio stands in it",
    "reply_text_whole": "true: each text repeats what came before it",
}
"""Every option there is, with what it does."""

_JSON = ("ndjson", "sse", "json")
_REPLIES = ("wav", "pcm16", "mixed-replace", *_JSON, "text")
_AUDIO = frozenset({"audio_base64", "audio_pcm_base64", "audio_floats", "audio_wav"})
_LATE = _AUDIO | {"text"}  # known only when the question is asked

KIND = Kind(
    name="http",
    about="any server that takes one HTTP request: a template out, WAV, samples or JSON back",
    codec="voxmeter.endpoints.http_endpoint:client",
    transport=HTTP,
    server="voxmeter.endpoints.http_served:server",
    host=HTTP_HOST,
    path="/",
    query_keys=("reply", "input_rate"),
    known_by="no protocol of its own; tried on servers written for its tests, and on ours",
    docs="docs/endpoints/http.md",
    options_at="voxmeter.endpoints.http_endpoint:OPTIONS",
)


def client(settings: Settings) -> Client:
    """Return the codec of one session.

    Raises:
        UserError: If an option is unknown, or has a value that it cannot have.
    """
    return Client(settings)


@dataclass(frozen=True, slots=True)
class Body:
    """What the request is made of.

    Attributes:
        form: `json`, `multipart` or `raw`.
        template: A table; for `raw`, the word `wav` or `pcm16`.
        used: The placeholders in it.
    """

    form: str
    template: Json
    used: frozenset[str]


@dataclass(frozen=True, slots=True)
class Reading:
    """How the answer is read.

    Attributes:
        form: One of the values of `reply`, without a rate.
        rate: Samples a second, before what the answer says.
        places: Where things stand in JSON.
    """

    form: str
    rate: int | None
    places: Places

    @property
    def speaks(self) -> bool:
        """Whether there can be audio in the answer."""
        return self.form != "text" and (self.form not in _JSON or bool(self.places.audio))

    def reader(self, head: Response) -> Reader:
        """Return what reads the body that follows a head."""
        match self.form:
            case "wav":
                return WavBody(NAME, self.rate)
            case "pcm16":
                return BareSamples(NAME, self.rate or RATE)
            case "mixed-replace":
                boundary = boundary_of(head.headers.get("content-type", "")) or "frame"
                return MixedBody(NAME, boundary, self.rate)
            case "text":
                return TextBody()
            case _:
                return JsonBody(Picker(NAME, self.places, self.rate, RATE), self.form)


class Client:
    """One session; every question is one request."""

    def __init__(self, settings: Settings) -> None:
        only_requests(NAME, settings)
        options = OptionTable(NAME, settings.options, OPTIONS)
        self._settings = settings
        self._rate = settings.input_rate or INPUT_RATE
        self._body = _body(options)
        self._query = options.table("query")
        self._late_in_query(template.placeholders(dict(self._query), "options.query"))
        self._method = options.choice("method", ("POST", "PUT", "PATCH"), "POST")
        self._path = options.text("path")
        self._key_header = options.text("key_header", "Authorization")
        self._reading = _reading(options, settings)
        self._exchange = Exchange(NAME, self._reading.reader)
        self._pcm = bytearray()
        self._text = ""
        if "audio_floats" in self._body.used:
            template.warm()

    @property
    def traits(self) -> Traits:
        """What the driver must know; words alone where no place for audio is named."""
        return Traits(
            self._rate,
            turn_end="request",
            takes_text="text" in self._body.used,
            reply_channel="speech" if self._reading.speaks else "text",
        )

    def address(self, url: str, api_key: str | None) -> Address:
        """Return where to connect, with the path and the query of the options."""
        parts = urlsplit(url)
        query = parse_qsl(parts.query, keep_blank_values=True)
        for name, value in self._query.items():
            told = template.filled_text(value, self._known())
            query += [(name, told)] if told is not None else []
        if self._query:
            parts = parts._replace(query=urlencode(query))
        parts = parts._replace(path=self._path or parts.path or "/")
        return keyed(urlunsplit(parts), api_key, self._key_header)

    def open(self) -> Step:
        """Be ready at once; say what has no place in the request."""
        return Step([Ready(note=self._unused())])

    def turn(self, turn: Turn) -> Step:
        """Do nothing: a request has no past."""
        return Step()

    def audio(self, data: bytes) -> Step:
        """Keep the question until it is whole."""
        self._pcm += data
        return Step()

    def text(self, text: str) -> Step:
        """Keep what is asked in writing."""
        self._text = text
        return Step()

    def end_turn(self) -> Step:
        """Send the request."""
        pcm, self._pcm = bytes(self._pcm), bytearray()
        values = self._known() | template.audio_values(pcm, self._rate, self._body.used)
        values["text"] = self._text
        self._text = ""
        match self._body.form:
            case "json":
                data, kind = template.json_body(self._body.template, values), "application/json"
            case "multipart" if isinstance(self._body.template, dict):
                data, kind = template.form_body(self._body.template, values)
            case _:
                wav = self._body.template == "wav"
                data = wav_file(pcm, self._rate) if wav else pcm
                kind = "audio/wav" if wav else "application/octet-stream"
        return Step(messages=[Request(data, {"Content-Type": kind}, self._method)])

    def played(self, reply: str) -> Step:
        """Do nothing: HTTP has no word for it."""
        return Step()

    def cancel(self, heard_ms: int) -> Step:
        """Do nothing: HTTP has no word for it."""
        return Step()

    def close(self) -> Step:
        """Do nothing: HTTP has no word for it."""
        return Step()

    def receive(self, message: Message) -> Step:
        """Return the events of one message.

        Raises:
            ProtocolError: If the answer is not what the options say.
        """
        return self._exchange.receive(message)

    def _known(self) -> dict[str, template.Value]:
        """Return the values that do not change from question to question."""
        settings = self._settings
        return {
            "sample_rate": self._rate,
            "instructions": settings.instructions,
            "model": settings.model,
            "voice": settings.voice,
            "temperature": settings.temperature,
            "session_tag": settings.session_tag,
        }

    def _unused(self) -> str:
        used = self._body.used | template.placeholders(dict(self._query), "options.query")
        left = unsaid(self._settings, used)
        return f"no place in the request for {', '.join(left)}" if left else ""

    def _late_in_query(self, used: frozenset[str]) -> None:
        for name in sorted(used & _LATE):
            found = f"{{{name}}} is not known when the connection is opened"
            raise UserError("options.query", found, "put it into json or multipart")


def _body(options: OptionTable) -> Body:
    given = [name for name in ("json", "multipart", "raw") if options.has(name)]
    if len(given) > 1:
        found = f"{' and '.join(given)} are both given"
        raise UserError(f"options.{given[1]}", found, "a request has one body: remove one of them")
    form = given[0] if given else "raw"
    if form == "raw":
        return Body(form, options.choice("raw", ("wav", "pcm16"), "wav"), frozenset())
    table = dict(options.table(form))
    used = template.placeholders(table, f"options.{form}")
    if form == "multipart" and any(isinstance(one, dict | list) for one in table.values()):
        raise options.wrong(form, "a table of single values")
    if not used & _AUDIO:
        cure = 'write "{audio_base64}" (or another placeholder) where it goes'
        raise UserError(f"options.{form}", "has no place for the question's audio", cure)
    return Body(form, table, used)


def _reading(options: OptionTable, settings: Settings) -> Reading:
    told = options.text("reply", "wav")
    form, at, rate = told.partition("@")
    if form not in _REPLIES or (at and not (form == "pcm16" and rate.isdecimal())):
        raise options.wrong("reply", ", ".join(repr(one) for one in (*_REPLIES, "pcm16@24000")))
    if at and not 4000 <= int(rate[:9]) <= 192_000:
        raise options.wrong("reply", "a rate from 4000 to 192000 behind the @")
    places = Places(
        audio=options.text("reply_audio"),
        text=options.text("reply_text"),
        error=options.text("reply_error", "error"),
        rate=options.text("reply_rate"),
        whole_text=options.flag("reply_text_whole", default=False),
    )
    if form in _JSON and not (places.audio or places.text):
        cure = 'add reply_audio = "path.to.audio", reply_text = "path.to.text", or both'
        raise UserError("options.reply", f"{form!r} needs to be told where the reply stands", cure)
    return Reading(form, settings.output_rate or (int(rate) if at else None), places)
