"""The models of a pipeline, loaded once for all sessions: Whisper, a language model, a voice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import Any

from voxmeter.client import redaction
from voxmeter.client.child import ChildDiedError
from voxmeter.client.clock import Clock, SystemClock
from voxmeter.client.pipeline_asr import Recogniser
from voxmeter.client.pipeline_llm import LanguageModel, language_model
from voxmeter.client.pipeline_transport import PipelineTransport
from voxmeter.client.pipeline_tts import Voice, voice
from voxmeter.client.transport import Launch, Transport
from voxmeter.endpoints.errors import UserError
from voxmeter.endpoints.http_exchange import keyed
from voxmeter.endpoints.pipeline_options import Wanted, read
from voxmeter.scoring.types import Unscored


class Pipeline:
    """What the sessions of one endpoint share: the models, loaded once.

    Args:
        launch: With the endpoint's settings.
        clock: Stamps what the stages give.

    Raises:
        UserError: If the settings do not fit together, a model or a voice is not on this machine,
            or a key is not in the environment.
    """

    def __init__(self, launch: Launch, clock: Clock | None = None) -> None:
        self._place = launch.place
        self.clock = clock or SystemClock()
        with _placed(self._place):
            self.wanted = read(launch.settings)
            self._keys = _keys(self.wanted)
            self.language_model = language_model(
                self.wanted.llm, launch.folder, launch.wire, self.clock
            )
            tts = self.wanted.tts
            self.voice = None if tts is None else voice(tts, launch.folder, launch.wire, self.clock)
            self.recogniser = Recogniser(self.wanted.asr, launch.folder, self.clock)

    def __enter__(self) -> Callable[[], Transport]:
        """Load all models, however long that takes.

        Raises:
            UserError: If one of them cannot be loaded here.
        """
        try:
            with _placed(self._place):
                loading = [(stage, stage.load()) for stage in self._stages()]
                for stage, future in loading:
                    _loaded(stage.name, future)
        except BaseException:
            self._close()
            raise
        return partial(PipelineTransport, self)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the processes of the models."""
        self._close()

    @property
    def note(self) -> str:
        """What it is made of, for the log."""
        return ", ".join(stage.name for stage in self._stages())

    def headers(self, own: Mapping[str, str]) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """Return the headers of requests to the language model and to the speech service.

        Args:
            own: The endpoint's own, perhaps with its key; a service elsewhere gets none of them.
        """
        llm_key, tts_key = self._keys
        llm = {**own, **keyed("", llm_key).headers}
        tts = self.wanted.tts
        shared = llm if tts is not None and tts.shares else {}
        return llm, {**shared, **keyed("", tts_key).headers}

    def _close(self) -> None:
        for stage in self._stages():
            stage.close()

    def _stages(self) -> list[Recogniser | LanguageModel | Voice]:
        return [
            self.recogniser,
            self.language_model,
            *([self.voice] if self.voice is not None else []),
        ]


def _keys(wanted: Wanted) -> tuple[str | None, str | None]:
    """Return the keys of the language model and of the speech service."""
    names = {
        "llm_key_env": wanted.llm.key_env,
        "tts_key_env": "" if wanted.tts is None else wanted.tts.key_env,
    }
    llm, tts = (
        redaction.secret(name, f"options.{option}") if name else None
        for option, name in names.items()
    )
    return llm, tts


def _loaded(name: str, future: Future[Any]) -> None:
    """Wait until a model is loaded; its process may die of it."""
    try:
        found = future.result()
    except ChildDiedError as error:
        problem = str(error)
    else:
        if not isinstance(found, Unscored):
            return
        problem = str(found.detail.get("problem") or found.reason)
    cure = "see that there is enough memory for it"
    raise UserError(name, f"its process ended while it was loaded ({problem[:200]})", cure)


@contextmanager
def _placed(place: str) -> Iterator[None]:
    """Say of a user's mistake in which endpoint it is, in the words of its options."""
    try:
        yield
    except UserError as error:
        where = error.place.replace("[transcribe] ", "options.asr_")
        cure = error.cure.replace("[transcribe]", "[endpoint.options]")
        raise UserError(f"{place} {where}", error.found, cure) from None
