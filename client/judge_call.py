"""One judge's service: a chat call over the openai package, patient, and without secrets."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from voxmeter.client import bounded_http, http_words, redaction
from voxmeter.client.dialing import loopback
from voxmeter.client.redaction import Redactor
from voxmeter.client.terminal import printable
from voxmeter.endpoints.codec import Ended
from voxmeter.endpoints.events import Fault, FaultKind
from voxmeter.endpoints.http_faults import refusal
from voxmeter.scoring.judge_messages import Message
from voxmeter.scoring.judging import Said
from voxmeter.scoring.rubrics import Rubric

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from voxmeter.client.bench import Judge

OPENAI = "https://api.openai.com/v1"
_FIRST_WAIT_S = 1.0
_LONGEST_WAIT_S = 30.0
_SPREAD = 0.1
_NO_KEY = "none"  # the package wants one, and would take a key of OpenAI's from the environment
_EVERYWHERE = frozenset({401, 404, 405})  # the key, the address, the model: wrong for all questions
_WORDS: Mapping[FaultKind, str] = {
    "auth": "the judge's key was refused",
    "quota": "the judge has no quota",
    "policy": "the judge's service withheld it",
    "busy": "the judge was busy",
    "request": "the judge refused the request",
    "server": "the judge's service failed",
}


def request_settings(judge: Judge) -> dict[str, Any]:
    """Return all but the messages that a request holds and that decides a reply."""
    longest = "max_completion_tokens" if _url(judge) == OPENAI else "max_tokens"
    chosen = {
        "temperature": judge.temperature,
        "seed": judge.seed,
        longest: judge.max_tokens,
    }
    sent = {name: value for name, value in chosen.items() if value != "default"}
    return {"model": judge.model, **sent, **({"body": judge.body} if judge.body else {})}


def asked_hash(judge: Judge, rubric: Rubric, messages: Sequence[Message]) -> str:
    """Return the hash of what a judge is asked and of how its reply is read."""
    whole = {
        "url": _url(judge),
        "settings": request_settings(judge),
        "messages": [[one.role, one.content] for one in messages],
        "read": [rubric.protocol, rubric.low, rubric.high, rubric.whole, rubric.values],
    }
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


def _url(judge: Judge) -> str:
    return (judge.base_url or OPENAI).rstrip("/")


class JudgeError(Exception):
    """A judge could not be asked.

    Attributes:
        reason: Why, in a few words that a report can count.
        fault: The service's own words and what they mean.
        tries: Requests that were made.
    """

    def __init__(self, fault: Fault, tries: int) -> None:
        self.reason = _WORDS[fault.kind]
        self.fault = fault
        self.tries = tries
        super().__init__(f"{self.reason}: {fault.message}")

    @property
    def hopeless(self) -> bool:
        """Whether no other question would fare better: the key, the model or money is missing."""
        return self.fault.fatal


@dataclass(frozen=True, slots=True)
class Patience:
    """How often and how long a service is asked again.

    Attributes:
        retries: Further requests after one that failed in a way that may pass.
        wait_limit_s: A service that asks for a longer wait is not asked again.
        seed: Of the waits that nobody named.
    """

    retries: int = 4
    wait_limit_s: float = 60.0
    seed: int = 0

    def wait_s(self, fault: Fault, made: int, about: str) -> float | None:
        """Return how long to wait before the next request, s; None if there is to be none.

        Args:
            fault: Of the last one.
            made: Requests so far, 1 or more.
            about: What is asked, so that questions refused together do not come back together.
        """
        if not fault.retryable or made > self.retries:
            return None
        draw = random.Random(f"{self.seed} {about} {made}").random()  # noqa: S311 - no secret
        named = fault.retry_after_s
        if named is None:
            return min(_FIRST_WAIT_S * 2.0 ** (made - 1), _LONGEST_WAIT_S) * (0.5 + draw / 2)
        return None if named > self.wait_limit_s else max(0.0, named) * (1 + _SPREAD * draw)


@dataclass(frozen=True, slots=True)
class _TimeOut(Fault):
    """Nothing came in time; worth one more request, for each takes as long again."""


Sleep = Callable[[float], Awaitable[None]]


class Service:
    """A judge, to be asked by several tasks at a time.

    Args:
        judge: Its table of bench.toml.
        source: The file it stands in, for errors.
        redactor: Takes secrets out of what the service says.
        environment: Other than the process's own, in tests.
        sleep: How to wait between requests.

    Raises:
        UserError: If its key is not in the environment.
    """

    def __init__(
        self,
        judge: Judge,
        source: str,
        redactor: Redactor,
        *,
        environment: Mapping[str, str] | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        place = f'{source}: [[judge]] "{printable(judge.name)}" api_key_env'
        named = judge.api_key_env
        self._key = redaction.secret(named, place, environment) if named else _NO_KEY
        self._judge = judge
        self._redactor = redactor
        self._sleep = sleep
        seed = judge.seed if isinstance(judge.seed, int) else 0
        self._patience = Patience(judge.retries, judge.retry_wait_limit_s, seed)
        self._not_before_s = 0.0
        self._client: AsyncOpenAI | None = None

    async def __aenter__(self) -> Self:
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient

        url = _url(self._judge)
        client = AsyncOpenAI(
            api_key=self._key,
            admin_api_key="",
            base_url=url,
            max_retries=0,
            timeout=self._judge.timeout_s,
            default_headers={"Authorization": f"Bearer {self._key}"},  # none of the environment's
            http_client=DefaultAsyncHttpxClient(
                trust_env=not loopback(url),
                headers=bounded_http.PLAIN,
                event_hooks=bounded_http.async_hooks(),
            ),
        )
        if url != OPENAI:  # what the environment says of OpenAI's accounts is no other's business
            client.organization = client.project = None
        self._client = client
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._client is not None:
            await self._client.close()

    async def ask(self, messages: Sequence[Message]) -> Said:
        """Return what the judge says.

        A wait that the service names to one question is kept by all of them.

        Raises:
            JudgeError: If the service cannot be asked, or not now.
        """
        about = hashlib.sha256(messages[-1].content.encode()).hexdigest()
        tries = slow = 0
        kept_s = 0.0
        while True:
            await self._not_before(kept_s, about)
            tries += 1
            found = await self._request(messages, tries)
            if isinstance(found, Said):
                return found
            slow += isinstance(found, _TimeOut)
            made = tries + slow * max(0, self._patience.retries - 1)
            wait_s = self._patience.wait_s(found, made, about)
            if wait_s is None:
                raise JudgeError(found, tries)
            now_s = time.monotonic()
            if found.retry_after_s is not None:
                self._not_before_s = max(self._not_before_s, now_s + wait_s)
            kept_s = self._not_before_s
            await self._sleep(max(wait_s, kept_s - now_s))

    async def _not_before(self, kept_s: float, about: str) -> None:
        """Wait for the moment that the service named, also where it was named during a wait.

        Args:
            kept_s: The moment that was waited for already.
            about: What is asked, so that those who wait do not come back together.
        """
        spread = 1 + _SPREAD * random.Random(about).random()  # noqa: S311 - no secret
        while self._not_before_s > kept_s:
            kept_s = self._not_before_s
            if (left_s := kept_s - time.monotonic()) > 0:
                await self._sleep(left_s * spread)

    async def _request(self, messages: Sequence[Message], tries: int) -> Said | Fault:
        import openai

        if self._client is None:
            raise RuntimeError("the service is not open")
        settings = request_settings(self._judge)
        body = settings.pop("body", None)
        sent: list[Any] = [{"role": one.role, "content": one.content} for one in messages]
        try:
            found = await self._client.chat.completions.with_raw_response.create(
                messages=sent, extra_body=body, **settings
            )
            return self._said(found.text, tries)
        except openai.APIStatusError as error:
            return self._refused(error)
        except openai.APITimeoutError:
            words = f"nothing came within {self._judge.timeout_s:g} s"
            return _TimeOut("server", retryable=True, message=words, fatal=False)
        except openai.APIConnectionError as error:
            words = self._clean(f"no connection: {error.__cause__ or error}")
            return Fault("server", retryable=True, message=words, fatal=False)
        except openai.OpenAIError as error:
            words = self._clean(str(error))
            return Fault("request", retryable=False, message=words, fatal=False)

    def _refused(self, error: Any) -> Fault:  # noqa: ANN401 - openai.APIStatusError
        answer = error.response
        headers = {name.lower(): value for name, value in answer.headers.items()}
        words = http_words.refusal(answer.reason_phrase, headers, answer.content, [self._key])
        fault = refusal(Ended(answer.status_code, words))  # whole: a wait is named at its end
        hopeless = fault.kind == "quota" or answer.status_code in _EVERYWHERE
        return replace(fault, message=self._clean(fault.message), fatal=hopeless)

    def _said(self, text: str, tries: int) -> Said | Fault:
        """Return what an answer says; one without choices is a failure of the service."""
        try:
            answer = json.loads(text)
        except (ValueError, RecursionError):
            shown = self._clean(text[:80])
            words = f"its answer is not JSON: {shown}"
            return Fault("server", retryable=True, message=words, fatal=False)
        match answer:
            case {"choices": [{"message": dict() as message} as choice, *_]}:
                content, refused = message.get("content"), message.get("refusal")
            case _:
                shown = self._clean(text[:200])
                words = f"no choices in {shown}"
                return Fault("server", retryable=True, message=words, fatal=False)
        raw = content if isinstance(content, str) else None
        if raw is None and isinstance(refused, str):
            raw = refused
        usage = answer.get("usage") or {}
        return Said(
            raw=None if raw is None else self._redactor.text(raw),
            finish=_text(choice.get("finish_reason")),
            model=_text(answer.get("model")),
            tokens_in=_count(usage, "prompt_tokens"),
            tokens_out=_count(usage, "completion_tokens"),
            tries=tries,
        )

    def _clean(self, words: str) -> str:
        return printable(self._redactor.text(" ".join(words.split())), 400)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _count(usage: object, name: str) -> int | None:
    value = usage.get(name) if isinstance(usage, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
