"""A judge's service over a real socket: what it refuses, how long we wait, what it must not see."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from chat_server import Answer, Chat, chat, refused

from voxmeter.client.bench import Judge
from voxmeter.client.judge_call import JudgeError, Patience, Service, asked_hash, request_settings
from voxmeter.client.redaction import Redactor
from voxmeter.endpoints.errors import UserError
from voxmeter.endpoints.events import Fault
from voxmeter.scoring import rubrics
from voxmeter.scoring.judge_messages import Message
from voxmeter.scoring.judging import Said

KEY = "sk-judge-very-secret"
SENT = (Message("system", "You rate."), Message("user", "Rate {this} 100 %."))


def asked(
    service: Chat, environment: dict[str, str] | None = None, **table: Any
) -> tuple[Said | JudgeError, list[float]]:
    """Ask once; return what came of it, and the waits that were kept."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    judge = Judge.model_validate({"name": "j", "model": "m", "base_url": service.url, **table})

    async def once() -> Said | JudgeError:
        named = environment or {}
        made = Service(judge, "b", Redactor([KEY]), environment=named, sleep=sleep)
        async with made as open_service:
            try:
                return await open_service.ask(SENT)
            except JudgeError as error:
                return error

    return asyncio.run(once()), waits


def in_turn(*answers: Answer | str) -> Callable[[Any], Answer | str]:
    """Return a judge that gives these answers, and then the last one for ever."""
    left = list(answers)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


def test_a_request_is_what_openais_chat_completions_takes() -> None:
    with chat(lambda _: Answer("7", usage=(12, 3))) as service:
        said, waits = asked(service, body={"reasoning_effort": "low"})
    assert said == Said("7", "stop", "served-model", 12, 3, 1)
    assert waits == []
    assert service.paths == ["/v1/chat/completions"]
    assert service.bodies[0] == {
        "model": "m",
        "messages": [{"role": one.role, "content": one.content} for one in SENT],
        "temperature": 0.0,
        "seed": 0,
        "max_tokens": 1000,
        "reasoning_effort": "low",
    }


def test_settings_that_a_model_refuses_can_be_left_out() -> None:
    with chat(lambda _: "7") as service:
        asked(service, temperature="default", seed="default", max_tokens="default")
    assert service.bodies[0].keys() == {"model", "messages"}


def test_openais_own_service_knows_the_longest_reply_by_another_name() -> None:
    named = Judge.model_validate({"name": "j", "model": "m", "api_key_env": "J"})
    assert request_settings(named)["max_completion_tokens"] == 1000
    assert "max_tokens" not in request_settings(named)
    written = named.model_copy(update={"base_url": "https://api.openai.com/v1/"})
    assert request_settings(written) == request_settings(named)


def test_a_key_goes_to_its_own_service_and_no_other_key_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai")
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "sk-admin")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: Bearer sk-of-openai\nX-Team: t1")
    with chat(lambda _: "7") as service:
        asked(service)
        asked(service, {"J": KEY}, api_key_env="J")
    assert service.headers[0]["authorization"] == "Bearer none"
    assert service.headers[1]["authorization"] == f"Bearer {KEY}"
    seen = json.dumps(service.headers)
    assert "sk-of-openai" not in seen
    assert "org-1" not in seen
    assert "proj-1" not in seen


def test_a_missing_key_is_one_line_with_the_variables_name() -> None:
    judge = Judge.model_validate({"name": "j", "model": "m", "api_key_env": "NO_SUCH"})
    with pytest.raises(UserError, match=r'\[\[judge\]\] "j" api_key_env: .*NO_SUCH is not set'):
        Service(judge, "bench.toml", Redactor(), environment={})


@pytest.mark.parametrize(
    ("answer", "reason", "hopeless"),
    [
        (refused(401, "Incorrect API key", "invalid_api_key"), "the judge's key was refused", True),
        (refused(402, "Insufficient Balance"), "the judge has no quota", True),
        (
            refused(429, "You exceeded your current quota", "insufficient_quota"),
            "the judge has no quota",
            True,
        ),
        (refused(403, "not for you"), "the judge's key was refused", False),
        (refused(404, "no model m", "model_not_found"), "the judge refused the request", True),
        (refused(400, "too long"), "the judge refused the request", False),
        (
            refused(400, "filtered", "content_filter"),
            "the judge's service withheld it",
            False,
        ),
    ],
)
def test_a_refusal_that_cannot_pass_is_not_asked_again(
    answer: Answer, reason: str, hopeless: bool
) -> None:
    with chat(lambda _: answer) as service:
        error, waits = asked(service)
    assert isinstance(error, JudgeError)
    assert (error.reason, error.hopeless, error.tries) == (reason, hopeless, 1)
    assert len(service.bodies) == 1
    assert waits == []


@pytest.mark.parametrize(
    "answer",
    [
        refused(500, "oops"),
        refused(503, "overloaded"),
        refused(429, "slow down", "rate_limit_exceeded"),
        refused(408, "too slow"),
        Answer(raw=b"<html>a page</html>"),
        Answer(raw=b'{"choices": []}'),
        Answer(raw=b"[1, 2"),
    ],
)
def test_what_may_pass_is_asked_again_after_a_growing_wait(answer: Answer) -> None:
    with chat(in_turn(answer, answer, "8")) as service:
        said, waits = asked(service)
    assert isinstance(said, Said)
    assert (said.raw, said.tries) == ("8", 3)
    assert len(waits) == 2
    assert 0.5 <= waits[0] <= 1.0 <= waits[1] <= 2.0


def test_patience_ends_and_what_the_service_said_is_kept() -> None:
    with chat(lambda _: refused(503, "try later")) as service:
        error, waits = asked(service, retries=2)
    assert isinstance(error, JudgeError)
    assert (error.reason, error.tries, len(waits)) == ("the judge was busy", 3, 2)
    assert "try later" in str(error)
    assert not error.hopeless


@pytest.mark.parametrize(
    ("headers", "message", "least"),
    [
        ({"retry_after": "7"}, "slow down", 7.0),
        ({"retry_after_ms": "1500"}, "slow down", 1.5),
        ({}, "Rate limit. Please try again in 6s.", 6.0),
        ({"retry_after": "7"}, "slow down " * 60, 7.0),
    ],
)
def test_the_wait_that_a_service_names_is_kept(
    headers: dict[str, str], message: str, least: float
) -> None:
    with chat(in_turn(refused(429, message, "", **headers), "8")) as service:
        said, waits = asked(service)
    assert isinstance(said, Said)
    assert len(waits) == 1
    assert least <= waits[0] <= least * 1.1


def test_a_wait_that_is_named_to_one_question_is_kept_by_all() -> None:
    waits: list[float] = []

    async def both(service: Chat) -> None:
        refused_once = asyncio.Event()

        async def sleep(seconds: float) -> None:
            waits.append(seconds)
            refused_once.set()

        judge = Judge.model_validate({"name": "j", "model": "m", "base_url": service.url})
        async with (
            Service(judge, "b", Redactor(), environment={}, sleep=sleep) as made,
            asyncio.TaskGroup() as group,
        ):
            group.create_task(made.ask(SENT))
            await refused_once.wait()
            group.create_task(made.ask(SENT))

    with chat(in_turn(refused(429, "slow down", "", retry_after="7"), "8")) as service:
        asyncio.run(both(service))
    first, second = waits
    assert 7 <= first <= 7.7
    assert 6 < second <= 8.5  # what is left of the wait, and never all at once
    assert len(service.bodies) == 3


def test_a_wait_that_is_named_while_another_question_waits_is_kept_by_it_too() -> None:
    waits: list[float] = []

    async def both(service: Chat) -> None:
        named = asyncio.Event()
        judge = Judge.model_validate({"name": "j", "model": "m", "base_url": service.url})

        async def sleep(seconds: float) -> None:
            waits.append(seconds)
            if len(waits) == 1:
                group.create_task(made.ask(SENT))
                await named.wait()
            named.set()

        made = Service(judge, "b", Redactor(), environment={}, sleep=sleep)
        async with made, asyncio.timeout(60), asyncio.TaskGroup() as group:
            group.create_task(made.ask(SENT))

    answers = (refused(500, "broken"), refused(429, "slow down", "", retry_after="7"), "8")
    with chat(in_turn(*answers)) as service:
        asyncio.run(both(service))
    own, refused_s, kept = waits
    assert own <= 1
    assert 7 <= refused_s <= 7.7
    assert 6 < kept <= 8.5
    assert len(service.bodies) == 4


def test_a_wait_over_the_limit_is_not_kept_and_not_cut_short() -> None:
    with chat(lambda _: refused(429, "later", "", retry_after="3600")) as service:
        error, waits = asked(service)
    assert isinstance(error, JudgeError)
    assert waits == []
    assert len(service.bodies) == 1


def test_a_service_that_says_nothing_is_left_after_its_time() -> None:
    with chat(in_turn(Answer(hangs=True), "8")) as service:
        said, waits = asked(service, timeout_s=0.2)
    assert isinstance(said, Said)
    assert (said.tries, len(waits)) == (2, 1)


def test_a_service_that_never_says_anything_is_asked_once_more_and_not_four_times() -> None:
    with chat(lambda _: Answer(hangs=True), serial=False) as service:
        error, waits = asked(service, timeout_s=0.1)
    assert isinstance(error, JudgeError)
    assert (error.reason, error.tries, len(waits)) == ("the judge's service failed", 2, 1)
    assert "nothing came within 0.1 s" in str(error)


def test_a_service_that_is_not_there_is_no_connection() -> None:
    with chat(lambda _: "8") as service:
        pass
    error, waits = asked(service, retries=1)
    assert isinstance(error, JudgeError)
    assert "no connection" in str(error)
    assert len(waits) == 1


def test_content_that_is_none_and_a_refusal_are_told_apart() -> None:
    declined = {
        "choices": [
            {"message": {"content": None, "refusal": "I will not."}, "finish_reason": "stop"}
        ]
    }
    with chat(in_turn(Answer(None, usage=None), Answer(raw=json.dumps(declined).encode()))) as it:
        nothing, _ = asked(it)
        words, _ = asked(it)
    assert isinstance(nothing, Said)
    assert (nothing.raw, nothing.tokens_in) == (None, None)
    assert isinstance(words, Said)
    assert (words.raw, words.model, words.tokens_out) == ("I will not.", "", None)


def test_a_key_in_what_the_service_says_is_taken_out() -> None:
    with chat(in_turn(refused(400, f"bad key {KEY}"), f"7 {KEY}")) as service:
        error, _ = asked(service, {"J": KEY}, api_key_env="J")
        said, _ = asked(service, {"J": KEY}, api_key_env="J")
    assert KEY not in str(error)
    assert isinstance(said, Said)
    assert KEY not in str(said)


def test_waits_nobody_named_double_up_to_a_limit_and_differ_by_question() -> None:
    fault = Fault("server", retryable=True, message="", fatal=False)
    patience = Patience(retries=20)
    waits = [patience.wait_s(fault, made, "q") or 0.0 for made in range(1, 12)]
    assert all(0.5 <= wait <= 30 for wait in waits)
    assert waits[-1] >= 15
    assert patience.wait_s(fault, 1, "q") != patience.wait_s(fault, 1, "other")
    assert patience.wait_s(fault, 21, "q") is None


def test_everything_that_decides_a_reply_is_in_its_hash() -> None:
    adu = rubrics.rubric("adu")

    def of(sent: Sequence[Message] = SENT, rubric: rubrics.Rubric = adu, **table: Any) -> str:
        base = {"name": "j", "model": "m", "base_url": "http://h/v1"}
        return asked_hash(Judge.model_validate(base | table), rubric, sent)

    hashes = [
        of(),
        of(SENT[:1]),
        of(rubric=adu.on_scale(1, 5)),
        of(model="n"),
        of(base_url="http://h/v2"),
        of(temperature=0.5),
        of(seed=1),
        of(max_tokens=2000),
        of(body={"reasoning_effort": "low"}),
    ]
    assert len(set(hashes)) == len(hashes)
    assert of(name="k", concurrency=9, price_in=1.0, base_url="http://h/v1/") == hashes[0]
