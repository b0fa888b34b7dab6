"""One answer of a Gradio function: what its events stand for, and the sound that they point to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from voxmeter.endpoints import adts
from voxmeter.endpoints.codec import Binary, Ended, Fetched, Json, Request, Step, Text
from voxmeter.endpoints.errors import ProtocolError
from voxmeter.endpoints.events import (
    Event,
    Fault,
    FaultKind,
    Note,
    ReplyAudio,
    ReplyEnded,
    ReplyStarted,
    ReplyText,
)
from voxmeter.endpoints.fields import Fields, clean, parse_object
from voxmeter.endpoints.gradio_app import App, Function, patched
from voxmeter.endpoints.hls import Follower
from voxmeter.endpoints.http_faults import refusal
from voxmeter.endpoints.http_lines import ServerSentEvents
from voxmeter.endpoints.http_replies import WavBody
from voxmeter.endpoints.json_path import at, from_base64

_UNSAID = "the app failed and keeps the reason to itself (launch(show_error=True) would tell it)"
_LONGEST = 400


@dataclass(frozen=True, slots=True)
class Plan:
    """What is asked of an app, and where in its answer things stand.

    Attributes:
        kind: Name of the kind, for errors.
        name: API name of the function.
        index: Its number, in place of a name; None for the name.
        data: Its inputs, with placeholders.
        used: The placeholders in them.
        audio: Outputs with sound, as paths, the best first.
        text: The output with the words, "" for none.
        error: An output that tells of a failure by not being empty, "" for none.
        words: Returns what of the text is said.
        final_text: Whether only the text of the finished answer counts.
        login: User name where the app has a login of its own, whose password is the key.
        first: What stands for outputs, by their paths, before there is an answer; "" for others.
        unused: The endpoint's keys that are set and have no place in the call.
    """

    kind: str
    name: str
    index: int | None
    data: Sequence[Json]
    used: frozenset[str]
    audio: Sequence[str]
    text: str = ""
    error: str = ""
    words: Callable[[str], str] = str
    final_text: bool = False
    login: str = ""
    first: Mapping[str, Json] = field(default_factory=dict)
    unused: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Call:
    """Where an answer comes from.

    Attributes:
        app: The app.
        function: What was called.
        name: Of the call, for what is fetched beside it.
        place: Returns path and query of the file that an output names, None if it names none.
        headers: Of all requests.
        rate: Samples a second of files in place of what they say; None for what they say.
    """

    app: App
    function: Function
    name: str
    place: Callable[[Mapping[str, Json]], str | None]
    headers: Mapping[str, str]
    rate: int | None


class Answer:
    """The answer to one call.

    Attributes:
        event: The server's name for the call, "" for whichever comes.
        completed: Whether the function is done.
        over: Whether the reply has ended or failed.
        outputs: What the function has given so far, without state.
    """

    def __init__(self, plan: Plan, call: Call) -> None:
        self._plan, self._call = plan, call
        self.event = ""
        self.completed = self.over = False
        self.outputs: Sequence[Json] = ()
        self._raw: list[Json] | None = None
        self._events = ServerSentEvents()
        self._started = self._sounded = self._asked_file = False
        self._said = ""
        self._stream: Follower | None = None
        self._file = WavBody(plan.kind, call.rate)

    # What the app tells

    def told(self, data: bytes) -> Step:
        """Return what a piece of the event stream leads to."""
        events: list[Event] = []
        requests: list[Request] = []
        for text in self._events.feed(data):
            if not self.over:
                step = self._message(parse_object(self._plan.kind, Text(text)))
                events += self._kept(step.events)
                requests += [one for one in step.messages if isinstance(one, Request)]
        return Step(events, requests)

    def whole(self, told: Fields) -> Sequence[Event]:
        """Return the events of an answer that is one object (Gradio 3)."""
        if told.has("error"):
            return self._kept([self._failure(told)])
        if self._raw is None or told.flag("is_generating", default=False):
            self._take(told, told, first=True)  # what ends a series of outputs has none of its own
        return self._kept([*self._begun(), *self._read(told, final=True)])

    def _message(self, told: Fields) -> Step:
        event = told.text("event_id", "")
        if event and self.event and event != self.event:
            return Step()  # another call of this session
        match told.text("msg", ""):
            case "process_generating" | "process_streaming":
                return self._given(told, final=False)
            case "process_completed":
                return self._given(told, final=True)
            case "unexpected_error" | "server_stopped" | "queue_full":
                words = told.text("message", "") or told.text("msg")
                kind: FaultKind = "busy" if told.text("msg") == "queue_full" else "server"
                return Step([Fault(kind, retryable=True, message=_line(words))])
            case "estimation":
                rank, size = told.data.get("rank"), told.data.get("queue_size")
                return Step([Note("estimation", _line(f"rank {rank} of {size}"))])
            case "process_starts" as name:
                return Step([Note(name)])
            case "log":
                return Step([Note("log", _line(told.text("log", "")))])
            case _:  # that the connection lives, or is about to be closed
                return Step()

    def _given(self, told: Fields, *, final: bool) -> Step:
        """Return what the outputs of a running or a finished function lead to."""
        output = told.object("output")
        if not told.flag("success", default=True):
            return Step([self._failure(output)])
        if not final or output.has("data"):  # a call that was stopped has no outputs of its own
            self._take(told, output, first=final or not self._call.app.diffs)
        self.completed = final
        events = [*self._begun(), *self._read(told, final=final)]
        return Step(events, self._followed(told, final=final))

    def _failure(self, output: Fields) -> Fault:
        words = output.data.get("error")
        said = _line(words) if isinstance(words, str) else ""
        return Fault("server", retryable=True, message=said or _UNSAID)

    def _take(self, told: Fields, output: Fields, *, first: bool) -> None:
        """Take the outputs in; all but the first of several say only what has changed."""
        data = output.data.get("data")
        if not isinstance(data, list):
            raise told.problem("the outputs are not a list")
        if first or self._raw is None:
            self._raw = data
        elif len(data) != len(self._raw):
            raise told.problem(f"{len(data)} outputs after {len(self._raw)}")
        else:
            pairs = zip(self._raw, data, strict=True)
            self._raw = [patched(told, old, edits) for old, edits in pairs]
        self.outputs = self._call.function.shown(self._raw)

    def _begun(self) -> Iterable[Event]:
        if self._started:
            return []
        self._started = True
        return [ReplyStarted()]

    # What the outputs say

    def _read(self, told: Fields, *, final: bool) -> Iterable[Event]:
        failure = _line(self._string(told, self._plan.error))
        if failure:
            return [Fault("server", retryable=True, message=failure)]
        if self._plan.final_text and not final:
            return []
        whole = self._plan.words(self._string(told, self._plan.text))
        # What has been said cannot be taken back: words that replace others go on a new line.
        grown = whole.startswith(self._said)
        new = whole[len(self._said) :] if grown else f"\n{whole}"
        self._said = whole
        return [ReplyText(new)] if new.strip() or (grown and new) else []

    def _string(self, told: Fields, path: str) -> str:
        """Return the text at a path, "" where there is none."""
        found = at(list(self.outputs), path) if path else None
        if found is None:
            return ""
        if not isinstance(found, str):
            raise told.problem(f"output {path} is not text")
        return clean(found)

    def _sounds(self, told: Fields | None) -> Iterable[Mapping[str, Json]]:
        """Yield the outputs with sound that are there, the best first."""
        for path in self._plan.audio:
            found = at(list(self.outputs), path)
            if isinstance(found, dict):
                yield found
            elif found is not None and told is not None:
                raise told.problem(f"output {path} is not audio")

    # Sound that is streamed

    def _followed(self, told: Fields, *, final: bool) -> Sequence[Request]:
        """Return what to fetch of the stream, now that there may be news in it."""
        if self._stream is None:
            for found in self._sounds(told):
                path = self._call.place(found)
                if found.get("is_stream") is True and path and ".m3u8" in path:
                    call = self._call
                    self._stream = Follower(self._plan.kind, path, call.name, call.headers)
                    break
        if self._stream is None:
            return []
        return self._stream.finish() if final else self._stream.look()

    def fetched(self, fetched: Fetched) -> Step:
        """Return what follows from what was fetched beside the events."""
        if self.over or self._stream is None or not self._stream.awaits(fetched):
            return Step()  # of an answer before this one
        if fetched.status >= 300:
            refused = refusal(Ended(fetched.status, fetched.reason))
            words = f"{fetched.aside}: {refused.message}"
            return Step(self._kept([Fault(refused.kind, refused.retryable, words)]))
        after = self._stream.take(fetched)
        heard = [self._segment(body) for body in after.segments]
        return Step(self._kept([one for one in heard if one is not None]), after.requests)

    def _segment(self, body: bytes) -> ReplyAudio | None:
        data = adts.without_tags(body)
        if not data:
            return None
        head = adts.head_of(data)
        if head is None:
            raise ProtocolError(
                self._plan.kind, "a segment is not AAC in ADTS frames", Binary(data)
            )
        self._sounded = True
        return ReplyAudio(data, "aac", head.rate)

    # Sound that is whole, and the end

    def settle(self) -> tuple[Sequence[Event], str | None]:
        """Return what is left when nothing more is told, and the path of a file to be fetched.

        A file is fetched only where no stream gave any sound: it holds the same once more.
        """
        if self.over or (self._stream is not None and not self._stream.done) or self._asked_file:
            return [], None
        if not self._sounded:
            for found in self._sounds(None):
                path = self._call.place(found)
                if found.get("is_stream") is True and path and ".m3u8" in path:
                    continue
                inline = found.get("data")
                if isinstance(inline, str) and inline:
                    return self._inline(inline), None
                if path is not None:
                    self._asked_file = True
                    return [], path
        return self._kept([ReplyEnded()]), None

    def file_piece(self, data: bytes) -> Sequence[Event]:
        """Return what a piece of the file stands for."""
        return self._kept(self._file.feed(data))

    def file_end(self) -> Sequence[Event]:
        """Return what the end of the file stands for."""
        return self._kept([*self._file.end(), ReplyEnded()])

    def _inline(self, text: str) -> Sequence[Event]:
        told = Fields(self._plan.kind, Text(text[:_LONGEST]), {})
        data = from_base64(told, "audio", text)
        return self._kept([*self._file.feed(data), *self._file.end(), ReplyEnded()])

    def _kept(self, events: Iterable[Event]) -> Sequence[Event]:
        """Return events, after a look whether they end the reply."""
        kept = list(events)
        self.over = self.over or any(isinstance(one, ReplyEnded | Fault) for one in kept)
        return kept


def _line(words: str) -> str:
    return " ".join(clean(words).split())[:_LONGEST]
