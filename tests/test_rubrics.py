"""Prompt files: what is in those that come with the program, and what a user's own may not be."""

from __future__ import annotations

import pytest

from voxmeter.scoring import rubrics
from voxmeter.scoring.rubrics import PromptError

HEAD = '+++\nprotocol = "single"\nscale = [0, 10]\n+++\n'
GOOD = HEAD + "# System\nYou rate.\n\n# User\n{{question}} {{candidates}} {{low}} to {{high}}\n"

PAPERS = {
    "adu": ("single", (0, 10), (), True),
    "adu-binary": ("single", (0, 10), (0, 10), True),
    "air-chat": ("pair", (1, 10), (), True),
    "air-align": ("label", (0, 1), (), False),
    "bba": ("binary", (0, 1), (), False),
    "voicebench-open": ("single", (1, 5), (), False),
    "voicebench-qa": ("binary", (0, 1), (), False),
}


def test_every_benchmark_has_its_prompt_on_its_own_scale() -> None:
    found = {}
    for name in rubrics.shipped():
        one = rubrics.rubric(name)
        found[name] = one.protocol, (one.low, one.high), one.values, one.swaps
    assert found == PAPERS


@pytest.mark.parametrize("name", PAPERS)
def test_a_shipped_prompt_says_what_it_wants_and_has_a_hash(name: str) -> None:
    one = rubrics.rubric(name)
    assert "response" in one.needs
    assert len(one.sha256) == 64
    assert one.record()["text"] == one.text
    assert one.rates or one.decides


def test_an_unknown_prompt_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        rubrics.rubric("nonsense")


def test_another_scale_is_another_prompt_and_moves_the_only_scores_there_are() -> None:
    binary = rubrics.rubric("adu-binary")
    moved = binary.on_scale(1, 5)
    assert (moved.low, moved.high, moved.values) == (1, 5, (1, 5))
    assert moved.sha256 != binary.sha256
    assert rubrics.rubric("bba").on_scale(1, 5) == rubrics.rubric("bba")


def test_windows_line_ends_are_fine() -> None:
    assert rubrics.parse("x", GOOD.replace("\n", "\r\n")).text == GOOD


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Rate it.", "is not a prompt"),
        (GOOD.replace("scale = [0, 10]", "scale = ["), "is not TOML"),
        (GOOD.replace("scale", "scala"), "unknown key 'scala'"),
        (GOOD.replace('"single"', '"stars"'), "has no protocol"),
        (GOOD.replace("scale = [0, 10]", ""), "has no scale"),
        (GOOD.replace("[0, 10]", "[10, 0]"), "has no scale"),
        (GOOD.replace('"single"', '"binary"'), "is no score"),
        (GOOD.replace("+++\n# S", "values = [11]\n+++\n# S"), "not a list of scores"),
        (GOOD.replace("+++\n# S", "values = [5, 5]\n+++\n# S"), "all the same"),
        (GOOD.replace("[0, 10]", "[true, 10]"), "has no scale"),
        (GOOD.replace("[0, 10]", "[0, inf]"), "has no scale"),
        (GOOD.replace("+++\n# S", "whole = 1\n+++\n# S"), "whole is 1"),
        (GOOD.replace("+++\n# S", 'labels = ["a"]\n+++\n# S'), "no two texts"),
        (GOOD.replace("{{question}}", "{{quest}}"), "unknown place {{quest}}"),
        (GOOD.replace("You rate.", "{{question}}"), "a text of others in # System"),
        (GOOD.replace("{{question}}", "{{candidates}}"), "one place twice"),
        (GOOD.replace("{{question}}", "{{response}}"), "keep one way"),
        (GOOD.replace("{{candidates}}", ""), "never shows the reply"),
        (
            GOOD.replace('"single"', '"pair"').replace("{{candidates}}", "{{response}}"),
            "has no {{candidates}}",
        ),
        (
            GOOD.replace('"single"', '"label"').replace("scale = [0, 10]\n", ""),
            "shows no {{options}}",
        ),
    ],
)
def test_what_a_prompt_may_not_be_is_told_with_a_cure(text: str, words: str) -> None:
    with pytest.raises(PromptError) as caught:
        rubrics.parse("mine", text)
    assert words in str(caught.value)
    assert "; " in str(caught.value)
