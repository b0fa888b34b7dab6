"""A sound card as the source and the sink of a live session, by callbacks of PortAudio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from types import ModuleType

from voxmeter.client.clock import Clock
from voxmeter.client.live import portaudio
from voxmeter.client.live.card_opening import Opening
from voxmeter.client.live.devices import choose, devices
from voxmeter.client.live.echo import EchoCanceller
from voxmeter.client.live.portaudio import Complaints
from voxmeter.client.live.signals import Tally
from voxmeter.client.live.sound import Block, Played, Sound, SoundEvent, SoundFacts, Trouble
from voxmeter.endpoints.errors import UserError

_OPEN_S = 10.0
_STEADY_S = 4.0
_CLOSE_S = 2.0
_LOOK_S = 0.5
_BACK_OFF_S = (0.25, 0.5, 1.0, 2.0, 4.0)
ECHO_NOTE = (
    "an echo canceller changes the microphone: for talking without a headset, not for figures"
)


@asynccontextmanager
async def open_card(
    microphone: str | None, speaker: str | None, *, clock: Clock, echo: bool = False
) -> AsyncIterator[Sound]:
    """Open a microphone and a speaker, and give them back at the end.

    Args:
        microphone: A part of its name, its number, or None for the default.
        speaker: Likewise.
        clock: The session's.
        echo: Whether to take the reply out of the microphone.

    Raises:
        UserError: If there is no PortAudio or no such device, or it does not open.
        MissingExtraError: If a package is not installed.
    """
    canceller = EchoCanceller() if echo else None
    with portaudio.complaints_kept() as complaints:
        card = Card(microphone, speaker, clock=clock, echo=canceller, complaints=complaints)
        await card.open()
        try:
            yield card
        finally:
            await card.close()


def check_card(microphone: str | None, speaker: str | None, *, echo: bool = False) -> None:
    """See to it that both devices are there, without opening them.

    Raises:
        UserError: As `open_card`, as far as that can be known.
        MissingExtraError: Likewise.
    """
    if echo:
        EchoCanceller()
    with portaudio.complaints_kept():
        found = devices(portaudio.load())
    choose(found, microphone, "microphone")
    choose(found, speaker, "speaker")


class Card:
    """Both devices over the whole session, though they may come and go."""

    def __init__(
        self,
        microphone: str | None,
        speaker: str | None,
        *,
        clock: Clock,
        echo: EchoCanceller | None,
        complaints: Complaints,
    ) -> None:
        self._wanted = microphone, speaker
        self._clock = clock
        self._echo = echo
        self._complaints = complaints
        self._loop = asyncio.get_running_loop()
        self._woken = asyncio.Event()
        self._ending = asyncio.Event()
        self._opening: Opening | None = None
        self._facts: SoundFacts | None = None
        self._given = 0
        self._tally = Tally()

    @property
    def facts(self) -> SoundFacts:
        """What is known of the devices that are open, or were last."""
        if self._facts is None:
            raise ValueError("not open yet")
        return self._facts

    async def open(self) -> None:
        """Open both devices and wait until sound flows evenly.

        Raises:
            UserError: As `open_card`.
        """
        library = await asyncio.to_thread(portaudio.load)
        await self._open(library)

    async def _open(self, library: ModuleType) -> None:
        try:
            opening = await asyncio.to_thread(
                portaudio.within, lambda: self._start(library), _OPEN_S
            )
        except TimeoutError:
            raise _hangs() from None
        self._opening = opening
        if self._ending.is_set():  # closed while it was being opened
            await self._give_back()
            return
        try:
            async with asyncio.timeout(_STEADY_S):
                while not (opening.steady() or self._ending.is_set()):
                    await self._wait(_LOOK_S)
        except TimeoutError:
            if opening.gone:
                await self._give_back()
                raise _hangs() from None
        facts = opening.facts
        notes = (*facts.notes, ECHO_NOTE) if self._echo is not None else facts.notes
        self._facts = replace(facts, notes=notes)

    def _start(self, library: ModuleType) -> Opening:
        found = devices(library)
        microphone = choose(found, self._wanted[0], "microphone")
        speaker = choose(found, self._wanted[1], "speaker")
        self._complaints.take()
        try:
            opening = Opening(
                library, microphone, speaker, clock=self._clock, wake=self._wake, given=self._given
            )
            opening.start()
        except library.PortAudioError as error:
            what = f"the microphone ({microphone.words}) or the speaker ({speaker.words})"
            raise portaudio.refused(error, what, self._complaints.take()) from error
        # Numbers change when something is plugged in, names do not.
        self._wanted = (
            self._wanted[0] and microphone.words,
            self._wanted[1] and speaker.words,
        )
        return opening

    def _wake(self) -> None:
        """Tell the event loop, from any thread, that there is something to collect."""
        with suppress(RuntimeError):  # a stream that hung came back after the loop was closed
            self._loop.call_soon_threadsafe(self._woken.set)

    async def _wait(self, limit_s: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                await self._woken.wait()
        self._woken.clear()

    async def events(self) -> AsyncIterator[SoundEvent]:
        """Yield blocks, what was played, and trouble, until `close`."""
        while not self._ending.is_set():
            opening = self._opening
            if opening is not None:
                for event in opening.collect(self._tally):
                    yield self._through_echo(event)
                for trouble in self._tally.take(self._clock.now()):
                    yield trouble
            if opening is None or opening.gone:
                async for trouble in self._come_back():
                    yield trouble
                continue
            await self._wait(_LOOK_S)

    def _through_echo(self, event: SoundEvent) -> SoundEvent:
        if self._echo is not None:
            if isinstance(event, Played):
                self._echo.played(event.position, event.samples, event.heard_ns)
            elif isinstance(event, Block):
                return replace(event, pcm=self._echo.clean(event.pcm, event.taken_ns))
        return event

    async def _come_back(self) -> AsyncIterator[Trouble]:
        """Tell that the devices are gone, try again and again, tell that there are some."""
        facts = self.facts
        said = "".join(f" ({line})" for line in self._complaints.take()[-1:])
        names = f"{facts.microphone} / {facts.speaker}"
        text = f"the microphone or the speaker is gone ({names}): plug it in again, waiting{said}"
        yield Trouble("lost", text, self._clock.now())
        await self._give_back()
        for pause_s in _pauses():
            with suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._ending.wait()
            if self._ending.is_set():
                return
            with suppress(UserError, portaudio.load().PortAudioError):
                await self._open(await asyncio.to_thread(portaudio.look_again))
                break
        if self._ending.is_set():
            return
        facts = self.facts
        text = f"sound is back: {facts.microphone} / {facts.speaker}"
        yield Trouble("back", text, self._clock.now())

    def play(self, pcm: bytes) -> None:
        """Queue samples; those given while there is no device are never played."""
        self._given += len(pcm) // 2
        if self._echo is not None:
            self._echo.given(pcm)
        if self._opening is not None:
            self._opening.outgoing.put(pcm)

    def clear(self) -> int:
        """Throw away what is not played yet; return how many samples that was."""
        return self._opening.outgoing.clear() if self._opening is not None else 0

    async def close(self) -> None:
        """Give the devices back; a system that hangs is left behind."""
        self._ending.set()
        self._woken.set()
        await self._give_back()

    async def _give_back(self) -> None:
        opening, self._opening = self._opening, None
        if opening is not None:
            with suppress(TimeoutError, Exception):  # it is gone: nothing about it matters now
                await asyncio.to_thread(portaudio.within, opening.close, _CLOSE_S)


def _pauses() -> Iterator[float]:
    yield from _BACK_OFF_S
    while True:
        yield _BACK_OFF_S[-1]


def _hangs() -> UserError:
    return UserError(
        portaudio.PLACE,
        "the devices open, but no sound comes from them",
        "restart the sound server, or choose others: `voxmeter live --list-devices`",
    )
