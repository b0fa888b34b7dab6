"""Says back what the user said: the shortest way to hear what an endpoint receives."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping

from voxmeter.client.audio import Pcm, Samples, resample
from voxmeter.client.servers import query as read
from voxmeter.client.servers.brain import Speech, Spoken, Terms, UserTurn
from voxmeter.scoring.speech import speech_bounds

_PACKET_MS = 100


class Echo:
    """The brain of `voxmeter serve echo`: answers with the user's own speech, in one burst."""

    def load(self) -> None:
        """Nothing to get ready."""

    def admit(self, query: Mapping[str, str]) -> Terms:
        """Accept `endpoint_ms` (default 500) and `tag`."""
        read.refuse_unknown(query, ("endpoint_ms", "tag"))
        read.text(query, "tag", 200)
        quiet_ms = round(read.number(query, "endpoint_ms", 500, 20, 10_000))
        return Terms(quiet_ms, endpoint_fixed="endpoint_ms" in query)

    async def answer(self, turn: UserTurn) -> AsyncGenerator[Spoken, None]:
        """Yield the turn from its first to its last audible sample; nothing if there is none."""
        sound = await asyncio.get_running_loop().run_in_executor(None, _speech, turn)
        size = _PACKET_MS * turn.output_rate // 1000
        for start in range(0, len(sound), size):
            yield Speech(sound[start : start + size], onset=0 if start == 0 else None)


def _speech(turn: UserTurn) -> Samples:
    if not len(turn.samples):
        return turn.samples
    bounds = speech_bounds(turn.samples, turn.rate)
    if bounds is None:
        return turn.samples[:0]
    part = turn.samples[bounds.onset_sample : bounds.end_sample]
    return resample(Pcm(part, turn.rate), turn.output_rate).samples
