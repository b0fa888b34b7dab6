"""The history of a served session keeps what was said, within bounds."""

from __future__ import annotations

from voxmeter.client.servers.history import History
from voxmeter.endpoints.codec import Turn
from voxmeter.endpoints.serving import HistoryAdded, UserAudio


def spoken(size: int, item: str = "") -> HistoryAdded:
    return HistoryAdded("user", "", UserAudio(bytes(size), "pcm16", 24_000), item)


def test_turns_come_back_in_order_and_unknown_words_are_left_out() -> None:
    history = History()
    history.add(HistoryAdded("system", "Be kind."), 0)
    history.exchange("Hello", "")
    history.exchange("", "Hi")
    assert history.turns() == (
        Turn("system", "Be kind."),
        Turn("user", "Hello"),
        Turn("assistant", "Hi"),
    )


def test_a_turn_can_be_taken_back_by_its_name_alone() -> None:
    history = History()
    history.add(HistoryAdded("user", "one", item="a"), 0)
    history.exchange("two", "")
    history.remove("")
    history.remove("b")
    history.remove("a")
    assert [turn.text for turn in history.turns()] == ["two"]


def test_the_question_is_the_last_turn_if_it_is_spoken() -> None:
    history = History()
    assert history.take_question() is None
    history.add(spoken(4), 7)
    history.add(HistoryAdded("assistant", "yes"), 8)
    assert history.take_question() is None
    history.add(spoken(6), 9)
    assert history.take_question() == (bytes(6), 9)
    assert len(history.turns()) == 2


def test_g711_is_decoded_and_half_a_sample_is_left_out() -> None:
    history = History()
    history.add(HistoryAdded("user", "", UserAudio(b"\xff" * 3, "pcmu", 8_000)), 0)
    history.add(spoken(5), 0)
    assert [len(turn.pcm) for turn in history.turns()] == [6, 4]


def test_the_oldest_turns_and_the_oldest_audio_go_first() -> None:
    history = History()
    for number in range(300):
        history.exchange(str(number), "")
    assert [history.turns()[0].text, len(history.turns())] == ["44", 256]
    for _ in range(3):
        history.add(spoken(15 * 2**20), 0)
    assert [len(turn.pcm) > 0 for turn in history.turns()[-3:]] == [False, True, True]
