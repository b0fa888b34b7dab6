"""Readers on a cluster that do not start, lack the model or die; Ray itself is not needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from voxmeter.client import affinity, ray_cluster, ray_transcribe
from voxmeter.client.bench import Transcribe
from voxmeter.client.ray_cluster import LostError, Node, NotStartedError
from voxmeter.client.ray_transcribe import ClusterTranscriber, TranscribeActor
from voxmeter.endpoints.errors import UserError
from voxmeter.scoring.asr import AsrSettings, Transcript
from voxmeter.scoring.types import Unscored

LIMIT_S = 60
HEARD = Transcript("four", "en")


def two_nodes() -> list[Node]:
    return [Node(name, name, 1, 0, streams=False, of=0) for name in ("a", "b")]


class Pool:
    """A model that is on this machine."""

    model, model_hash = "tiny.en", "right"

    def __init__(self, *words: object, **named: object) -> None:
        pass

    def record(self) -> dict[str, object]:
        return {}

    def close(self) -> None:
        pass


class Cluster:
    """Answers of actors by node: what `cores`, `open` and `read` return or raise."""

    def __init__(self) -> None:
        self.says: dict[str, dict[str, Callable[[], Any]]] = {}
        self.started: list[str] = []

    def actor(self, node: Node, kind: type, *words: object, **named: object) -> Any:
        assert kind is TranscribeActor
        self.started.append(node.id)
        usual = {"cores": lambda: (0,), "open": lambda: "right", "read": lambda: HEARD}
        said = usual | self.says.get(node.id, {})
        return Handle(said)


class Handle:
    """An actor as the driver holds it."""

    def __init__(self, said: Mapping[str, Callable[[], Any]]) -> None:
        self._said = said

    def __getattr__(self, name: str) -> Any:
        return SimpleNamespace(remote=lambda *_: self._said[name])


def raising(error: Exception) -> Callable[[], Any]:
    def raises() -> Any:
        raise error

    return raises


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster()
    monkeypatch.setattr(ray_cluster, "nodes", two_nodes)
    monkeypatch.setattr(ray_cluster, "actor", made.actor)
    monkeypatch.setattr(ray_cluster, "ended", lambda _: None)
    monkeypatch.setattr(ray_cluster, "answer", lambda say, *_: say())
    monkeypatch.setattr(ray_transcribe, "TranscriberPool", Pool)
    return made


@pytest.fixture
def reader(cluster: Cluster) -> Iterator[ClusterTranscriber]:
    del cluster
    bench: Any = SimpleNamespace(transcribe=Transcribe())
    with ClusterTranscriber(bench) as made:
        yield made


@pytest.fixture
def reply(tmp_path: Path) -> Path:
    path = tmp_path / "reply.flac"
    path.write_bytes(b"sound")
    return path


def test_a_node_without_the_model_ends_the_scoring_with_its_reason(
    cluster: Cluster, reader: ClusterTranscriber, reply: Path
) -> None:
    lacks = UserError("whisper model", "is not there", "put it there")
    cluster.says["a"] = {"open": raising(lacks)}
    for key in ("first", "second"):
        with pytest.raises(UserError, match=r"node a: whisper model: is not there"):
            reader.submit(reply, key).result(LIMIT_S)


def test_a_node_with_another_model_is_named(
    cluster: Cluster, reader: ClusterTranscriber, reply: Path
) -> None:
    cluster.says["a"] = {"open": lambda: "wrong"}
    with pytest.raises(UserError, match=r"node a: has another model tiny\.en"):
        reader.submit(reply).result(LIMIT_S)


def test_the_actor_names_its_missing_model_to_whoever_asks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(affinity, "confine_all", lambda _: None)
    missing = tmp_path / "model"
    actor = TranscribeActor(str(missing), AsrSettings(), None, 0, allow_downloads=False)
    with pytest.raises(UserError, match=str(missing)):
        actor.open()


def test_a_reply_that_cannot_be_opened_here_is_no_lost_worker(
    reader: ClusterTranscriber, reply: Path, tmp_path: Path
) -> None:
    found = reader.submit(tmp_path / "gone.flac", "k").result(LIMIT_S)
    assert isinstance(found, Unscored)
    assert found.reason == "the reply's audio cannot be read"
    assert reader.submit(reply).result(LIMIT_S) == HEARD


def test_a_place_that_gives_no_processor_is_said_and_the_others_read(
    cluster: Cluster,
    reader: ClusterTranscriber,
    reply: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    cluster.says["a"] = {"cores": raising(NotStartedError("no answer within 120 s"))}
    assert reader.submit(reply).result(LIMIT_S) == HEARD
    assert cluster.started == ["a", "b"]
    assert "node a starts no Whisper: no answer within 120 s" in capsys.readouterr().err


def test_where_no_place_gives_a_processor_scoring_ends_and_says_so(
    cluster: Cluster, reader: ClusterTranscriber, reply: Path
) -> None:
    cluster.says["a"] = cluster.says["b"] = {
        "cores": raising(NotStartedError("no answer within 120 s"))
    }
    for _ in range(2):
        with pytest.raises(UserError, match=r"starts no Whisper: no answer within 120 s.*status"):
            reader.submit(reply).result(LIMIT_S)
    assert cluster.started == ["a", "b"]


def test_a_reply_that_kills_two_readers_is_given_up_and_the_next_one_is_read(
    cluster: Cluster, reader: ClusterTranscriber, reply: Path
) -> None:
    dies: list[Exception] = [LostError("killed"), LostError("killed")]

    def read() -> Transcript:
        if dies:
            raise dies.pop()
        return HEARD

    cluster.says["a"] = cluster.says["b"] = {"read": read}
    found = reader.submit(reply).result(LIMIT_S)
    assert isinstance(found, Unscored)
    assert found.reason == "the transcribing worker was lost twice"
    assert found.detail["problem"] == "killed"
    assert reader.submit(reply).result(LIMIT_S) == HEARD
