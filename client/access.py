"""What an endpoint needs from the environment: its URL, headers and key, with secrets filled in.

`{model}` in URL and headers is filled in here too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import quote

from voxmeter.client import redaction
from voxmeter.client.redaction import Redactor
from voxmeter.endpoints.errors import UserError

if TYPE_CHECKING:
    from voxmeter.client.bench import Bench, Endpoint

MODEL = "{model}"
"""What stands for the endpoint's `model` in its URL and headers."""


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach one endpoint; its `repr` shows no secret.

    Attributes:
        url: With every `{env:NAME}` and `{model}` filled in; None for a command or a built-in
            server.
        headers: Likewise.
        api_key: Value of the variable that `api_key_env` names.
        secrets: Every value that came from the environment, for the redactor.
    """

    url: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    api_key: str | None = field(default=None, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)


def access(endpoint: Endpoint, source: str, environment: Mapping[str, str] | None = None) -> Access:
    """Return how to reach an endpoint.

    Args:
        endpoint: Its table.
        source: The file it stands in, for errors.
        environment: Other than the process's own, in tests.

    Raises:
        UserError: If a variable that the table names is missing or empty.
    """
    place = f'{source}: [[endpoint]] "{endpoint.name}"'
    found: list[str] = []

    def filled(text: str, key: str, model: str) -> str:
        names = redaction.references(text)
        found.extend(redaction.secret(name, f"{place} {key}", environment) for name in names)
        return redaction.expand(text.replace(MODEL, model), f"{place} {key}", environment)

    url = None
    if endpoint.url is not None:
        url = filled(endpoint.url, "url", quote(endpoint.model, safe=""))
    headers = {
        name: filled(value, f"headers.{name}", endpoint.model)
        for name, value in endpoint.headers.items()
    }
    found.extend(
        redaction.secret(name, f"{place} options.{option}", environment)
        for option, name in _key_options(endpoint).items()
    )
    key = None
    if endpoint.api_key_env is not None:
        key = redaction.secret(endpoint.api_key_env, f"{place} api_key_env", environment)
        found.append(key)
    return Access(url, headers, key, tuple(found))


def redactor(bench: Bench, environment: Mapping[str, str] | None = None) -> Redactor:
    """Return a redactor that knows every secret the bench names and the environment has."""
    values: list[str] = []
    for endpoint in bench.endpoints:
        try:
            values.extend(access(endpoint, bench.source, environment).secrets)
        except UserError:  # what is missing cannot leak; the run says so before it starts
            values.extend(_present(endpoint, environment))
    mqtt = bench.publish.mqtt
    names = [judge.api_key_env for judge in bench.judges]
    names += [mqtt.username_env, mqtt.password_env] if mqtt else []
    values.extend(_values(names, environment))
    return Redactor(values)


def variables(endpoint: Endpoint) -> tuple[str, ...]:
    """Return the environment variables that an endpoint's table names, each once."""
    texts = [endpoint.url or "", *endpoint.headers.values()]
    names = [name for text in texts for name in redaction.references(text)]
    names += _key_options(endpoint).values()
    key = [endpoint.api_key_env] if endpoint.api_key_env else []
    return tuple(dict.fromkeys([*key, *names]))


def _present(endpoint: Endpoint, environment: Mapping[str, str] | None) -> list[str]:
    return _values(list(variables(endpoint)), environment)


def _key_options(endpoint: Endpoint) -> dict[str, str]:
    """Return the options that name a variable with a key: those that end in `_key_env`."""
    options = endpoint.options.items()
    return {
        option: name
        for option, name in options
        if option.endswith("_key_env") and isinstance(name, str) and name
    }


def _values(names: list[str | None], environment: Mapping[str, str] | None) -> list[str]:
    values: list[str] = []
    for name in names:
        try:
            values.append(redaction.secret(name or "", "", environment))
        except UserError:
            continue
    return values
