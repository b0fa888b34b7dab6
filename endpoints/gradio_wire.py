"""A Gradio app as an endpoint: upload, queue, events, and the sound that they point to.

One question is one call of a function. The question's file is uploaded, the call joins the queue,
and a stream of server-sent events tells how it goes. Sound is never in the events: they name a file
that is whole, or an HLS playlist that grows while the function runs. A playlist is followed beside
the events, on connections of its own, so that its first segment is heard when it is there.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Literal
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

from voxmeter.endpoints.codec import (
    Address,
    Binary,
    Ended,
    Fetched,
    Json,
    Message,
    Request,
    Response,
    Settings,
    Step,
    Traits,
    Turn,
)
from voxmeter.endpoints.errors import ProtocolError
from voxmeter.endpoints.events import Event, Fault, Ready
from voxmeter.endpoints.fields import MAX_CHARACTERS, Fields, clean, parse_object
from voxmeter.endpoints.gradio_answer import Answer, Call, Plan
from voxmeter.endpoints.gradio_app import App, Function, read_app
from voxmeter.endpoints.gradio_template import filled_all, output_path
from voxmeter.endpoints.http_exchange import keyed
from voxmeter.endpoints.http_faults import refusal
from voxmeter.endpoints.http_template import File, form_body
from voxmeter.endpoints.json_path import at
from voxmeter.endpoints.wav import wav_file

INPUT_RATE = 16_000
Doing = Literal["nothing", "login", "config", "upload", "join", "events", "run", "file"]
_JSON = {"Content-Type": "application/json"}


class Client:
    """One session with one app; see `Plan` for what is asked of it."""

    def __init__(self, settings: Settings, plan: Plan) -> None:
        self._settings, self._plan = settings, plan
        self._rate = settings.input_rate or INPUT_RATE
        self._base, self._password = "", ""
        self._cookie: dict[str, str] = {}
        self._app = App("", "", "", ())
        self._function = Function(0, "", (), ())
        self._doing: Doing = "nothing"
        self._head: Response | None = None
        self._body = bytearray()
        self._pcm, self._text = bytearray(), ""
        self._wav, self._asked = b"", ""  # of the question under way
        self._before: Sequence[Json] = ()
        self._turn = 0
        self._answer = self._expected()

    @property
    def traits(self) -> Traits:
        """What the driver must know; words alone where no output with sound is named."""
        return Traits(
            self._rate,
            turn_end="request",
            takes_text="text" in self._plan.used,
            reply_end="final",
            reply_channel="speech" if self._plan.audio else "text",
        )

    def address(self, url: str, api_key: str | None) -> Address:
        """Return where to connect; the key goes along, unless it is a password."""
        parts = urlsplit(url)
        self._base = parts.path.rstrip("/")
        url = urlunsplit(parts._replace(path=parts.path or "/"))
        if self._plan.login:
            self._password = api_key or ""
            return Address(url)
        return keyed(url, api_key)

    def open(self) -> Step:
        """Ask what the app is, after its login where it has one."""
        if not self._plan.login:
            return self._get("config", f"{self._base}/config")
        form = {"username": self._plan.login, "password": self._password}
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        return self._post("login", f"{self._base}/login", urlencode(form).encode("ascii"), kind)

    def turn(self, turn: Turn) -> Step:
        """Do nothing: what went before is passed back by the app's own outputs."""
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
        """Upload the question where one is wanted, else call the function."""
        self._wav = wav_file(bytes(self._pcm), self._rate) if "audio" in self._plan.used else b""
        self._pcm.clear()
        self._asked, self._text = clean(self._text), ""
        self._turn += 1
        self._answer = self._expected()
        if not self._wav or not self._app.queued:
            return self._call("")
        body, kind = form_body({"files": "{audio_wav}"}, {"audio_wav": File(self._wav)})
        return self._post("upload", f"{self._api}/upload", body, {"Content-Type": kind})

    def played(self, reply: str) -> Step:
        """Do nothing: HTTP has no word for it."""
        return Step()

    def cancel(self, heard_ms: int) -> Step:
        """Do nothing: the call ends when the connection is closed."""
        return Step()

    def close(self) -> Step:
        """Do nothing: a call that still runs ends when the connection is closed."""
        return Step()

    def receive(self, message: Message) -> Step:
        """Return the events of one message, and what to ask next.

        Raises:
            ProtocolError: If it is not part of an answer, or not what Gradio says.
        """
        match message:
            case Fetched():
                return self._fetched(message)
            case Response() if self._doing != "nothing" and self._head is None:
                self._head = message
                self._body.clear()
                return Step()
            case Binary(data) if self._head is not None:
                return self._piece(data)
            case Ended(None) if self._head is not None:
                head, self._head = self._head, None
                return self._done(head)
            case Ended(code) if code is not None and self._doing != "nothing":
                self._head = None
                return Step([self._refused(message)])
            case _:
                raise ProtocolError(self._plan.kind, "not a part of an answer, or not now", message)

    def _piece(self, data: bytes) -> Step:
        if self._doing == "events":
            return self._answer.told(data)
        if self._doing == "file":
            return Step(self._answer.file_piece(data))
        self._body += data
        if len(self._body) > MAX_CHARACTERS:
            raise ProtocolError(self._plan.kind, "over 64 MiB", Binary(data))
        return Step()

    def _done(self, head: Response) -> Step:
        doing, self._doing = self._doing, "nothing"
        body = Binary(bytes(self._body))
        match doing:
            case "login":
                self._cookie = {"Cookie": head.headers.get("set-cookie", "").partition(";")[0]}
                return self._get("config", f"{self._base}/config")
            case "config":
                return self._configured(parse_object(self._plan.kind, body))
            case "upload":
                return self._call(self._uploaded(body))
            case "join":
                self._answer.event = parse_object(self._plan.kind, body).text("event_id", "")
                query = urlencode({"session_hash": self._session})
                return self._get("events", f"{self._api}/queue/data?{query}")
            case "run":
                return self._ran(parse_object(self._plan.kind, body))
            case "file":
                return Step(self._answer.file_end())
            case _:
                return self._events_over()

    def _configured(self, told: Fields) -> Step:
        if told.data.get("auth_required"):
            words = "the app wants a login: set the option login, and its password as the key"
            return Step([Fault("auth", retryable=False, message=words)])
        self._app = read_app(told)
        found = self._app.find(self._plan.name, self._plan.index)
        problem = self._app.refused or self._unfit(found)
        if problem or found is None:
            return Step([Fault("request", retryable=False, message=problem)])
        self._function = found
        left = ", ".join(self._plan.unused)
        note = f"; no place in the call for {left}" if left else ""
        return Step([Ready(note=f"Gradio {self._app.version}, {self._app.protocol}{note}")])

    def _unfit(self, found: Function | None) -> str:
        """Return what is wrong with the function that the user named; "" for nothing."""
        if found is None:
            wanted = f"number {self._plan.index}" if self._plan.index is not None else ""
            wanted = wanted or f"/{self._plan.name.strip('/')}"
            return f"the app has no function {wanted}; it has {self._app.names}"
        if found.all_inputs(self._plan.data) is None:
            kinds = ", ".join(kind or "?" for kind in found.inputs)
            given = len(self._plan.data)
            return f"{given} inputs are given, the function takes {len(found.inputs)}: {kinds}"
        return ""

    def _uploaded(self, body: Binary) -> str:
        try:
            paths = json.loads(body.data)
        except (ValueError, RecursionError):
            paths = None
        if not isinstance(paths, list) or len(paths) != 1 or not isinstance(paths[0], str):
            raise ProtocolError(self._plan.kind, "the answer to an upload has no path in it", body)
        return clean(paths[0])

    def _call(self, uploaded: str) -> Step:
        data = self._function.all_inputs(filled_all(self._plan.data, self._values(uploaded)))
        told: dict[str, Json] = {
            "data": data,
            "fn_index": self._function.index,
            "session_hash": self._session,
        }
        body = json.dumps(told).encode("ascii")
        if self._app.queued:
            return self._post("join", f"{self._api}/queue/join", body, _JSON)
        return self._post("run", f"{self._base}/run/predict", body, _JSON)

    def _values(self, uploaded: str) -> Mapping[str, Json]:
        settings = self._settings
        values: dict[str, Json] = {
            "audio": self._file(uploaded) if "audio" in self._plan.used else None,
            "text": self._asked,
            "instructions": clean(settings.instructions),
            "model": settings.model,
            "voice": settings.voice,
            "temperature": settings.temperature,
            "sample_rate": self._rate,
            "session_tag": settings.session_tag,
            "null": None,
        }
        for name in self._plan.used:
            path = output_path(name)
            if path is not None:
                first = self._plan.first.get(path, "")
                values[name] = at(list(self._before), path) if self._before else first
        return values

    def _file(self, uploaded: str) -> Json:
        """Return the question as the app's inputs take files."""
        if not self._app.queued:
            data = base64.b64encode(self._wav).decode("ascii")
            return {"name": "question.wav", "data": f"data:audio/wav;base64,{data}"}
        return {
            "path": uploaded,
            "orig_name": "question.wav",
            "mime_type": "audio/wav",
            "size": len(self._wav),
            "meta": {"_type": "gradio.FileData"},
        }

    def _ran(self, told: Fields) -> Step:
        """Return what follows from the answer of an app of Gradio 3, which comes in one piece."""
        events = self._answer.whole(told)
        if told.flag("is_generating", default=False) and not self._answer.over:
            return Step(events, self._call("").messages)  # one output a request, until the last
        self._answer.completed = True
        return self._settled(events)

    def _events_over(self) -> Step:
        """Return what follows when the events are over."""
        if not self._answer.completed and not self._answer.over:
            words = "the events end before the function does"
            raise ProtocolError(self._plan.kind, words, Ended())
        return self._settled([])

    def _settled(self, events: Sequence[Event]) -> Step:
        """Return what is left to do when all is told: fetch a file, or end the reply."""
        self._before = self._answer.outputs
        last, path = self._answer.settle()
        asked = [] if path is None else self._get("file", path).messages
        return Step([*events, *last], asked)

    def _fetched(self, fetched: Fetched) -> Step:
        step = self._answer.fetched(fetched)
        if self._doing != "nothing" or not self._answer.completed:
            return step
        after = self._settled(step.events)
        return Step(after.events, [*step.messages, *after.messages])

    def _expected(self) -> Answer:
        """Return what reads the answer to the next call."""
        name, rate = f"turn {self._turn}", self._settings.output_rate
        call = Call(self._app, self._function, name, self._place, self._cookie, rate)
        return Answer(self._plan, call)

    # Requests

    @property
    def _api(self) -> str:
        return self._base + self._app.prefix

    @property
    def _session(self) -> str:
        """Name of this session for the server: its own for each, so that no state is shared."""
        return sha256(self._settings.session_tag.encode()).hexdigest()[:16]

    def _place(self, found: Mapping[str, Json]) -> str | None:
        """Return path and query of a file that an output names; None if it names none."""
        url, path = found.get("url"), found.get("path") or found.get("name")
        if isinstance(url, str) and url:
            try:
                parts = urlsplit(clean(url))
            except ValueError:
                return None
            own = parts.path if parts.path.startswith(f"{self._base}/") else self._base + parts.path
            return f"{own}?{parts.query}" if parts.query else own
        if isinstance(path, str) and path:
            kind = "stream/" if found.get("is_stream") else "file="
            return f"{self._api}/{kind}{quote(clean(path))}"
        return None

    def _get(self, doing: Doing, path: str) -> Step:
        self._doing = doing
        return Step(messages=[Request(b"", self._cookie, "GET", path)])

    def _post(self, doing: Doing, path: str, body: bytes, headers: Mapping[str, str]) -> Step:
        self._doing = doing
        return Step(messages=[Request(body, {**headers, **self._cookie}, "POST", path)])

    def _refused(self, ended: Ended) -> Fault:
        found = refusal(ended)
        if self._doing == "login":
            return Fault("auth", retryable=False, message=f"login: {found.message}")
        if found.kind == "auth" and self._doing == "config" and not self._plan.login:
            words = f"{found.message}; set api_key_env, or the option login for the app's own login"
            return Fault("auth", retryable=False, message=words)
        return found
