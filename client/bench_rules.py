"""Rules of a bench.toml that join several tables: names, kinds, addresses, what is built."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from typing import cast
from urllib.parse import parse_qsl, urlsplit

from voxmeter.client import gate_rules, kinds, nearest, redaction
from voxmeter.client.access import MODEL
from voxmeter.client.bench import Bench, Endpoint, Judge, Suite
from voxmeter.client.terminal import printable
from voxmeter.endpoints import catalog
from voxmeter.endpoints.codec import Codec, Settings, Traits
from voxmeter.endpoints.errors import MissingExtraError, UserError
from voxmeter.endpoints.kind import HTTP, MQTT, WEBSOCKET, Kind, load
from voxmeter.suites.suite import Item

_SCHEMES = ("ws", "wss", "http", "https", "mqtt", "mqtts")
_PLAIN = ("demo", "jsonl")
_SECRET_NAMES = ("authorization", "cookie", "key", "token", "secret", "password")
_WRITTEN_SECRET = (
    "a secret is written into the file",
    'put it into an environment variable and write "{env:NAME}"',
)


def check(bench: Bench) -> None:
    """Check what no single table can know.

    Raises:
        UserError: At the first rule that is broken.
    """
    for table, names in (
        ("endpoint", [one.name for one in bench.endpoints]),
        ("suite", [one.label for one in bench.suites]),
        ("condition", [one.name for one in bench.conditions]),
        ("judge", [one.name for one in bench.judges]),
    ):
        _distinct(bench.source, table, names)
    if any(one.name == "clean" for one in bench.conditions):
        raise UserError(
            f'{bench.source}: [[condition]] "clean"',
            "clean is the name of the untouched clips",
            "give this condition another name",
        )
    for endpoint in bench.endpoints:
        _check_endpoint(_place(bench, endpoint), endpoint)
    for suite in bench.suites:
        _check_suite(bench, f'{bench.source}: [[suite]] "{printable(suite.label)}"', suite)
    for judge in bench.judges:
        _check_judge(bench, f'{bench.source}: [[judge]] "{printable(judge.name)}"', judge)
    _check_gates(bench)


def refuse_unbuilt(bench: Bench) -> None:
    """Refuse a run that needs what this version or a protocol does not have, not ignore it.

    Raises:
        UserError: Naming the first such table.
    """
    for endpoint in bench.endpoints:
        _check_protocol(bench, endpoint)
    for suite in bench.suites:
        place = f'[[suite]] "{suite.label}"'
        if suite.interrupt:
            raise _unbuilt(bench, f"{place} interrupt", "interruptions")


def refuse_lost_text(bench: Bench, endpoints: Iterable[str], items: Iterable[Item]) -> None:
    """Refuse a run in which a question is asked in writing of a protocol that carries no words.

    Args:
        bench: Fit for `refuse_unbuilt`.
        endpoints: Names of those that are asked.
        items: What is asked of each of them.

    Raises:
        UserError: Naming the first such endpoint and suite.
    """
    written = next((item.suite for item in items if item.question_via == "text"), None)
    if written is None:
        return
    asked = set(endpoints)
    for endpoint in bench.endpoints:
        if endpoint.name in asked and not traits(bench, endpoint).takes_text:
            raise UserError(
                _place(bench, endpoint),
                f"as it is set up, kind {endpoint.kind} takes no words beside the audio, and suite "
                f'"{printable(written)}" asks its questions in writing',
                'write question_via = "speech-after" there, or run them apart (--only)',
            )


def _check_protocol(bench: Bench, endpoint: Endpoint) -> None:
    """Refuse settings that the endpoint's protocol cannot carry, and what is not there to start."""
    from voxmeter.client.dialing import tls_context
    from voxmeter.client.targets import pool
    from voxmeter.client.transport import TransportSettings

    pool(bench, endpoint)
    place = _place(bench, endpoint)
    if endpoint.ca_file is not None:
        try:
            tls_context("https:", TransportSettings(ca_file=endpoint.ca_file))
        except UserError as error:
            raise UserError(f"{place} ca_file {error.place}", error.found, error.cure) from None
    channel = traits(bench, endpoint).reply_channel
    if endpoint.reply_channel not in {None, channel}:
        raise UserError(
            f"{place} reply_channel",
            f"is {endpoint.reply_channel}, but as it is set up it replies in {channel}",
            f"ask for {endpoint.reply_channel} replies in [endpoint.options], or remove the key",
        )


def traits(bench: Bench, endpoint: Endpoint) -> Traits:
    """Return what an endpoint is as it is set up.

    Raises:
        UserError: If its kind does not allow its settings.
    """
    from voxmeter.client.targets import settings

    make = cast("Callable[[Settings], Codec]", load(catalog.find(endpoint.kind).codec))
    try:
        made = make(settings(endpoint))
        made.open()  # no input, no output: what it would send first is only made
        found = made.traits
    except UserError as error:
        place = f"{_place(bench, endpoint)} {error.place}"
        raise UserError(place, error.found, error.cure) from None
    return found


def _place(bench: Bench, endpoint: Endpoint) -> str:
    return f'{bench.source}: [[endpoint]] "{printable(endpoint.name)}"'


def _unbuilt(bench: Bench, place: str, feature: str) -> UserError:
    return UserError(
        f"{bench.source}: {place}", f"this version has no {feature} yet", "remove it for this run"
    )


def _distinct(source: str, table: str, names: Sequence[str]) -> None:
    seen: dict[str, int] = {}
    for number, name in enumerate(names, start=1):
        other = seen.setdefault(name.casefold(), number)
        if other != number:
            same = names[other - 1] == name
            found = "have the same name" if same else "have names that differ in case alone"
            raise UserError(
                f'{source}: [[{table}]] "{printable(name)}"',
                f"tables {other} and {number} {found}",
                "give each a name of its own",
            )


def _check_endpoint(place: str, endpoint: Endpoint) -> None:
    kind = catalog.find(endpoint.kind, f"{place} kind")
    _check_place(place, endpoint, kind)
    for name in endpoint.options:
        if kind.options_at is not None and name not in kind.options:
            found = f"kind {kind.name} has no such option"
            cure = nearest.cure(name, kind.options)
            raise UserError(f"{place} options.{printable(name, 60)}", found, cure)
    for name, value in endpoint.headers.items():
        _check_header(f"{place} headers.{printable(name, 60)}", name, value)
    _check_model(place, endpoint)


def _check_model(place: str, endpoint: Endpoint) -> None:
    """Check that what `{model}` in URL and headers stands for is there, and can stand there."""
    headers = [f"headers.{name}" for name, value in endpoint.headers.items() if MODEL in value]
    wanted = [*(["url"] if MODEL in (endpoint.url or "") else []), *headers]
    if wanted and not endpoint.model:
        found = f"is missing, and {printable(wanted[0], 60)} has {MODEL} in it"
        raise UserError(f"{place} model", found, 'add model = "..."')
    if headers and not endpoint.model.isprintable():
        found = f"has characters that {printable(headers[0], 60)} cannot carry"
        raise UserError(f"{place} model", found, "remove what cannot be printed")


def _check_place(place: str, endpoint: Endpoint, kind: Kind) -> None:
    """Check that what says where an endpoint is fits its kind."""
    if endpoint.url is not None:
        _check_url(f"{place} url", endpoint.url)
        if kind.transport == HTTP and endpoint.url.startswith(("ws:", "wss:")):
            found = f"is a websocket's, but kind {kind.name} speaks HTTP"
            raise UserError(f"{place} url", found, 'write it like "http://host/path"')
        broker = endpoint.url.startswith(("mqtt:", "mqtts:", "{env:"))
        if kind.transport == MQTT and not broker:
            cure = 'write it like "mqtt://host:1883"'
            raise UserError(f"{place} url", "is not the URL of an MQTT broker", cure)
        if kind.transport == MQTT and find_spec("aiomqtt") is None:
            raise MissingExtraError(place, "aiomqtt", "mqtt")
        if kind.transport in {WEBSOCKET, HTTP} and endpoint.url.startswith(("mqtt:", "mqtts:")):
            found = f"is an MQTT broker's, and kind {kind.name} does not speak MQTT"
            raise UserError(f"{place} url", found, "kind hermes does")
    if endpoint.command == ():
        raise UserError(f"{place} command", "is empty", "write the program and its arguments")
    keys = ("url", "command", "builtin")
    given = next((key for key in keys if getattr(endpoint, key) is not None), None)
    if kind.place == "url":
        if given is None and kind.name in catalog.KINDS:
            raise UserError(f"{place} url", "is missing", 'add url = "..." or builtin = "cascade"')
        if given == "command" and kind.transport in {WEBSOCKET, HTTP, MQTT}:
            found = f"kind {kind.name} talks to a URL, not to a program"
            raise UserError(f"{place} command", found, "give its url")
        if given == "builtin" and kind.name in catalog.KINDS and kind.server is None:
            found = f"none of our own servers speaks {kind.name}"
            raise UserError(f"{place} builtin", found, "give the url of one that does")
        return
    cure = f"voxmeter endpoints {kind.name} shows how it is set up"
    if given not in {None, kind.place}:
        raise UserError(
            f"{place} {given}", f"kind {kind.name} has no {given}", f"remove it; {cure}"
        )
    if kind.place == "command" and given is None:
        raise UserError(f"{place} command", "is missing", f"add the program to start; {cure}")


def _check_url(place: str, url: str) -> None:
    if redaction.references(url):
        return  # its parts are known only when the environment is
    cure = 'write it like "wss://host/path"'
    try:
        parts = urlsplit(url)
        port_is_fine = parts.port is None or parts.port > 0
    except ValueError as error:
        raise UserError(place, f"is not a URL ({error})", cure) from None
    if parts.username is not None or parts.password is not None:
        raise UserError(
            place,
            "carries a user name or password",
            "put secrets into environment variables: "
            "api_key_env, or {env:NAME} in the URL or in headers",
        )
    shown = printable(url, 80)
    if parts.scheme not in _SCHEMES:
        known = ", ".join(f"{scheme}://" for scheme in _SCHEMES)
        raise UserError(place, f'"{shown}" does not begin with a known scheme', f"known: {known}")
    if not port_is_fine or not parts.hostname:
        raise UserError(place, f'"{shown}" names no host', cure)
    for name, value in parse_qsl(parts.query):
        if value and name.lower().endswith(_SECRET_NAMES):
            raise UserError(f"{place} {printable(name, 60)}=", *_WRITTEN_SECRET)
    if any(letter.isspace() for letter in url):
        raise UserError(place, f'"{shown}" has a space in it', "remove it, or write %20")


def _check_header(place: str, name: str, value: str) -> None:
    if not name or not all(33 <= ord(letter) < 127 and letter != ":" for letter in name):
        raise UserError(place, "is not a header name", "use letters, digits and hyphens")
    if "\n" in value or "\r" in value:
        raise UserError(place, "has a line end in its value", "remove it")
    if name.lower().endswith(_SECRET_NAMES) and not redaction.references(value):
        raise UserError(place, *_WRITTEN_SECRET)


def _check_suite(bench: Bench, place: str, suite: Suite) -> None:
    known = kinds.suite_kinds()
    if suite.kind not in known:
        raise UserError(
            f"{place} kind",
            f'unknown kind "{printable(suite.kind)}"',
            nearest.cure(suite.kind, known),
        )
    if suite.kind == "jsonl" and suite.path is None:
        raise UserError(f"{place} path", "is missing", "add the path of the file of items")
    if suite.kind in _PLAIN and suite.options:
        raise UserError(f"{place} options", f"a {suite.kind} suite has none", "remove the table")
    if suite.conditions is None:
        return
    if not suite.conditions:
        raise UserError(f"{place} conditions", "is empty", 'write ["clean"], or remove the key')
    if len(set(suite.conditions)) != len(suite.conditions):
        raise UserError(f"{place} conditions", "names one twice", "keep one of them")
    if suite.kind in _PLAIN:  # other kinds may bring conditions of their own
        names = ["clean", *(one.name for one in bench.conditions)]
        _all_known(f"{place} conditions", "condition", suite.conditions, names)


def _check_judge(bench: Bench, place: str, judge: Judge) -> None:
    labels = [one.label for one in bench.suites]
    if judge.base_url is None and judge.api_key_env is None:
        found = "is missing, and so is base_url: that is OpenAI's own service"
        raise UserError(f"{place} api_key_env", found, 'write api_key_env = "OPENAI_API_KEY"')
    if judge.base_url is not None:
        _check_url(f"{place} base_url", judge.base_url)
        if not judge.base_url.startswith(("http:", "https:")):
            raise UserError(
                f"{place} base_url", "is not an HTTP URL", 'write it like "https://host/v1"'
            )
        if redaction.references(judge.base_url):
            raise UserError(
                f"{place} base_url", "has {env:...} in it", "put the key into api_key_env"
            )
    _all_known(f"{place} suites", "suite", judge.suites or (), labels)
    if isinstance(judge.scale, dict):
        _all_known(f"{place} scale", "suite", judge.scale, labels)
    suites = [name.partition("/")[0] for name in judge.prompts if "/" in name]
    _all_known(f"{place} prompts", "suite", suites, labels)
    for name in judge.body:
        if name.lower() in {
            "api_key",
            "apikey",
            "authorization",
            "key",
            "password",
            "secret",
            "token",
        }:
            raise UserError(
                f"{place} body.{name}", _WRITTEN_SECRET[0], "put the key into api_key_env"
            )
        if name in {"messages", "stream", "n", "model"}:
            found, cure = f"would replace {name}, which is ours to set", "remove it"
            raise UserError(f"{place} body.{name}", found, cure)


def _check_gates(bench: Bench) -> None:
    for number, gate in enumerate(bench.gates, start=1):
        place = f"{bench.source}: [[gate]] {number}"
        conditions = {one for suite in bench.suites for one in bench.suite_conditions(suite)}
        for what, wanted, names in (
            ("endpoint", gate.endpoint, [one.name for one in bench.endpoints]),
            ("suite", gate.suite, [one.label for one in bench.suites]),
            ("condition", gate.condition, sorted(conditions)),
        ):
            if wanted is not None:
                _all_known(f"{place} {what}", what, [wanted], names)
        metric, colon, judge = gate.metric.partition(":")
        if colon and metric in gate_rules.JUDGED:
            _all_known(f"{place} metric", "judge", [judge], [one.name for one in bench.judges])


def _all_known(place: str, what: str, wanted: Iterable[str], names: Sequence[str]) -> None:
    for name in wanted:
        if name not in names:
            found = f'unknown {what} "{printable(name)}"'
            raise UserError(place, found, nearest.cure(name, names))
