"""The echo says back exactly the audible part of what it heard."""

from __future__ import annotations

import numpy as np
import pytest
from plain_wire import RATE, client, question, served, silence
from websockets.exceptions import InvalidStatus

from voxmeter.client.audio import from_pcm16, to_pcm16
from voxmeter.client.servers.brain import Speech, UserTurn
from voxmeter.client.servers.echo import Echo
from voxmeter.client.servers.voice import babble
from voxmeter.scoring.speech import speech_bounds


async def test_the_users_speech_comes_back_without_the_quiet_around_it() -> None:
    async with served(Echo()) as url, client(url, "?endpoint_ms=100&tag=x") as one:
        await one.say(question())
        await one.until("reply_ended")
    said = from_pcm16(to_pcm16(babble(RATE, 0.4)))
    assert np.array_equal(from_pcm16(bytes(one.audio)), said)


async def test_the_quiet_that_ends_a_turn_is_the_clients_wish_unless_the_query_says_it() -> None:
    for query, turns in (("", 1), ("?endpoint_ms=100", 2)):
        async with served(Echo()) as url, client(url, query) as one:
            await one.do("set", silence_ms=400)
            for _ in range(2):
                await one.say(question(tail_ms=250))
                if turns == 2:
                    await one.until("reply_ended")
            if turns == 1:
                await one.say(silence(450))
                await one.until("reply_ended")
        assert one.names().count("reply_started") == turns


async def test_a_reply_at_another_rate_is_resampled() -> None:
    turn = UserTurn(question(), RATE, 24_000, 0)
    pieces = [piece async for piece in Echo().answer(turn)]
    sound = np.concatenate([piece.samples for piece in pieces if isinstance(piece, Speech)])
    bounds = speech_bounds(sound, 24_000)
    assert bounds is not None
    assert len(sound) == round(0.4 * 24_000)
    assert [piece.onset for piece in pieces if isinstance(piece, Speech)] == [0, None, None, None]


async def test_nothing_audible_is_answered_with_nothing() -> None:
    for samples in (silence(300), silence(0)):
        turn = UserTurn(samples, RATE, RATE, 0, committed=True)
        assert [piece async for piece in Echo().answer(turn)] == []


async def test_an_unknown_query_key_is_refused() -> None:
    async with served(Echo()) as url:
        with pytest.raises(InvalidStatus):
            async with client(url, "?delay_ms=100"):
                pass
