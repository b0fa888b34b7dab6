"""What is published: topics, figures, events, Home Assistant, live sessions; and what waits."""

from __future__ import annotations

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Lock
from typing import Any, get_args

import numpy as np
import pytest
from fakes import FrozenClock
from sample_run import trial

from voxmeter.client import publish_discovery
from voxmeter.client.bench import Mqtt
from voxmeter.client.live import updates
from voxmeter.client.publish import Publication, Shown, Status
from voxmeter.client.publish_content import LARGEST, run_summary, trial_event
from voxmeter.client.publish_live import live_listener
from voxmeter.client.publish_outbox import Outbox
from voxmeter.client.publish_process import Delivery
from voxmeter.client.publish_stats import PERCENTILES, Rolling
from voxmeter.client.publish_topics import Post, Topics, dumped, prefix_problem, slug
from voxmeter.client.redaction import Redactor
from voxmeter.scoring.stats import percentile


class Noted:
    """A sender that keeps what it is given."""

    def __init__(self) -> None:
        self.posts: list[Post] = []

    def offer(self, post: Post) -> None:
        self.posts.append(post)

    def end(self, limit_s: float = 2.0) -> Delivery:
        return Delivery(len(self.posts), 0)

    def at(self, end: str) -> list[Any]:
        found = [one.payload for one in self.posts if one.topic.endswith(end)]
        return [json.loads(one) if one.startswith("{") else one for one in found]


def publication(sender: Noted, secret: str = "", **table: Any) -> Publication:
    mqtt = Mqtt(host="h", **table)
    return Publication(sender, mqtt, "bench-1", Redactor([secret]), FrozenClock())


def test_a_name_that_is_fit_for_a_topic_stays_as_it_is() -> None:
    assert slug("gpt-realtime_2") == "gpt-realtime_2"


@pytest.mark.parametrize("name", ["a/b", "a+b", "#", "a b", "", "\0", "é", "x" * 65, "tiny.en"])
def test_other_names_lose_what_a_topic_cannot_hold_and_end_in_a_hash(name: str) -> None:
    found = slug(name)
    assert 0 < len(found) <= 64
    assert found.replace("-", "").replace("_", "").isalnum()
    assert found.isascii()
    assert found == slug(name)


def test_names_that_look_alike_have_topics_of_their_own() -> None:
    names = ["a/b", "a+b", "a#b", "a b", "a-b", "x" * 80, "x" * 81, "", "/"]
    assert len({slug(name) for name in names}) == len(names)


@pytest.mark.parametrize("text", ["a/+", "#", "$SYS", "/a", "a/", "a//b", "a\0", "a" * 201])
def test_a_prefix_that_no_topic_can_have_is_told(text: str) -> None:
    assert prefix_problem(text) is not None
    assert prefix_problem("lab/voxmeter") is None


def test_topics_are_those_of_the_page() -> None:
    topics = Topics("voxmeter", "bench-20260102-030405-abcd")
    base = "voxmeter/bench-20260102-030405-abcd"
    assert topics.status == f"{base}/status"
    assert topics.event("q1") == f"{base}/item/q1/event"
    assert topics.stats("bot") == f"{base}/endpoint/bot/stats"
    assert topics.summary == f"{base}/summary"


def test_of_too_many_events_the_oldest_is_dropped_and_what_is_retained_stays() -> None:
    box = Outbox(most_events=2)
    box.put(Post("status", "a", retain=True))
    for number in range(4):
        box.put(Post("event", str(number)))
    box.put(Post("status", "b", retain=True))
    assert [one.payload for one in box.take(9)] == ["2", "3", "b"]
    assert (box.dropped, box.replaced, len(box)) == (2, 1, 0)


def test_what_could_not_be_sent_comes_first_again_unless_there_is_something_newer() -> None:
    box = Outbox(most_events=3)
    for post in (Post("s", "old", retain=True), Post("e", "1"), Post("e", "2")):
        box.put(post)
    taken = box.take(3)
    box.put(Post("s", "new", retain=True))
    box.put(Post("e", "3"))
    box.put_back(taken)
    assert [one.payload for one in box.take(9)] == ["1", "2", "new", "3"]
    assert (box.dropped, box.replaced) == (0, 1)


def test_put_back_events_are_the_oldest_that_are_dropped() -> None:
    box = Outbox(most_events=2)
    box.put(Post("e", "1"))
    taken = box.take(1)
    box.put(Post("e", "2"))
    box.put(Post("e", "3"))
    box.put_back(taken)
    assert [one.payload for one in box.take(9)] == ["2", "3"]
    assert box.dropped == 1


@pytest.mark.parametrize("n", [1, 2, 19, 20, 99, 100])
def test_rolling_percentiles_are_those_of_the_report(n: int) -> None:
    values = np.random.default_rng(n).uniform(200, 900, n)
    rolling = Rolling("bot")
    for number, value in enumerate(values):
        rolling.add(trial(f"q{number}", first_audible_ms=float(value)))
    found = rolling.content()["first_audible_ms"]
    for name, fraction in PERCENTILES.items():
        wanted = percentile(values, fraction)
        assert found[name] == (None if wanted is None else pytest.approx(wanted.value, abs=0.001))
    assert found["n"] == n


def test_rolling_figures_leave_out_what_a_summary_leaves_out() -> None:
    rolling = Rolling("bot")
    for row in (
        trial("warm", number=0, first_audible_ms=9000.0),
        trial("q1", first_audible_ms=300.0),
        trial("q2", first_audible_ms=5000.0, audit={"latency_valid": False}),
        trial("q3", "timeout"),
        trial("q4", "bad_clip"),
    ):
        rolling.add(row)
    found = rolling.content()
    assert (found["n"], found["ok"], found["errors"]) == (3, 2, 1)
    assert found["status"] == {"bad_clip": 1, "timeout": 1}
    assert found["first_audible_ms"]["n"] == 1
    assert found["first_audible_ms"]["p50"] == 300


def test_an_event_holds_names_and_figures_and_no_words() -> None:
    row = trial("q1", first_audible_ms=321.5, reply_text="My name is Ann.")
    event = trial_event(row, "answered")
    assert event["marks"] == {"first_audible_ms": 321.5}
    assert (event["endpoint"], event["suite"], event["item"]) == ("bot", "demo", "q1")
    assert (event["condition"], event["trial"], event["status"]) == ("clean", 1, "ok")
    assert "Ann" not in dumped(event)


def test_no_secret_is_published_in_any_part_of_a_message() -> None:
    sender, secret = Noted(), "hunter2-hunter2"
    told = publication(sender, secret, discovery=True)
    told.trial(trial(secret, "refused", endpoint=secret, suite=secret, fault=f"key {secret}"))
    told.summary({"cells": [], "warnings": [{"code": "x", "text": secret, "cure": ""}]})
    assert len(sender.posts) > 4
    for post in sender.posts:
        assert secret not in post.topic + post.payload


def test_status_is_said_once_for_each_change_and_stays_at_the_broker() -> None:
    sender = Noted()
    told = publication(sender)
    for status in ("running", "running", "scoring"):
        told.status(status)
    told.end("done")
    assert sender.at("/status") == ["online", "running", "scoring", "done"]
    assert all(post.retain for post in sender.posts)


def test_an_attempt_that_is_made_again_is_an_event_and_counts_in_no_figure() -> None:
    sender = Noted()
    told = publication(sender)

    on_screen: list[str] = []

    class Screen:
        def endpoint(self, name: str, trials: int) -> None:
            on_screen.append(name)

        def trial(self, trial: object, row: object) -> None:
            on_screen.append("trial")

        def again(self, trial: object, row: object, wait_s: float) -> None:
            on_screen.append(f"again {wait_s}")

    shown = Shown(told, Screen())
    shown.endpoint("bot", 2)
    shown.again(None, trial("q1", "refused"), 1.5)  # type: ignore[arg-type]
    shown.trial(None, trial("q1", first_audible_ms=300.0))  # type: ignore[arg-type]
    assert on_screen == ["bot", "again 1.5", "trial"]
    again, answered = sender.at("/item/q1/event")
    assert (again["stage"], again["status"], again["wait_s"]) == ("again", "refused", 1.5)
    assert (answered["stage"], answered["run"]) == ("answered", "bench-1")
    assert [one["n"] for one in sender.at("/endpoint/bot/stats")] == [0, 1]


def test_a_run_that_goes_on_counts_what_it_had() -> None:
    sender = Noted()
    told = publication(sender)
    told.earlier([trial("q1", first_audible_ms=300.0), trial("q2", "timeout")])
    told.endpoint("bot")
    told.trial(trial("q3", first_audible_ms=400.0))
    assert [one["n"] for one in sender.at("/stats")] == [2, 3]


def test_accuracy_joins_the_figures_when_the_run_is_scored() -> None:
    sender = Noted()
    told = publication(sender)
    told.trial(trial("q1", first_audible_ms=300.0))
    cells = [
        {"endpoint": "bot", "metrics": {"accuracy": {"value": 0.5, "n": 10}}},
        {"endpoint": "bot", "metrics": {"accuracy": {"value": 1.0, "n": 30}}},
        {"endpoint": "other", "metrics": {"accuracy": {"value": 0.0, "n": 50}}},
    ]
    told.summary({"cells": cells})
    last = sender.at("/endpoint/bot/stats")[-1]
    assert (last["accuracy"], last["accuracy_n"]) == (0.875, 40)


def test_a_summary_that_no_broker_would_take_is_shortened_and_says_so() -> None:
    metrics = {f"m{number}": {"value": 0.5, "text": "x" * 100} for number in range(40)}
    metrics["accuracy"] = {"value": 0.5, "text": ""}
    cell = {"endpoint": "e", "suite": "s", "condition": "c", "planned": 1, "status": {}}
    few = run_summary({"cells": [cell | {"metrics": metrics, "groups": ["x"]}]})
    assert few["shortened"] is False
    assert "groups" not in few["cells"][0]
    for count in (50, 2000):
        many = run_summary({"cells": [cell | {"metrics": metrics}] * count})
        assert many["shortened"] is True
        assert len(dumped(many)) <= LARGEST
    assert run_summary({"cells": [cell | {"metrics": metrics}] * 50})["cells"][0]["metrics"] == {
        "accuracy": {"value": 0.5, "text": ""}
    }


def test_home_assistant_is_told_of_every_figure_that_the_stats_have() -> None:
    sender = Noted()
    told = publication(sender, discovery=True, discovery_topic="ha")
    told.trial(trial("q1", first_audible_ms=300.0, endpoint="my bot"))
    configs = [post for post in sender.posts if post.topic.startswith("ha/")]
    stats = sender.at("/stats")[-1]
    stats_topic = Topics("voxmeter", "bench-1").stats("my bot")
    assert len(configs) == len({post.topic for post in configs}) == 8
    for post in configs:
        content = json.loads(post.payload)
        assert post.retain
        assert post.topic == f"ha/sensor/{content['unique_id']}/config"
        assert content["state_topic"] == stats_topic
        assert content["availability_topic"] == "voxmeter/bench-1/status"
        assert content["expire_after"] > 0
        assert content["device"]["name"] == "voxmeter my bot"
        path = content["value_template"].removeprefix("{{ value_json.").removesuffix(" }}")
        value: Any = stats
        for name in path.split("."):
            assert name in value, path
            value = value[name]
    audible = json.loads(configs[0].payload)
    assert (audible["unit_of_measurement"], audible["device_class"]) == ("ms", "duration")


def test_home_assistant_forgets_the_figures_where_that_is_asked_for() -> None:
    sender = Noted()
    told = publication(sender, discovery=True, discovery_remove=True)
    told.endpoint("bot")
    made = [post.topic for post in sender.posts if post.topic.startswith("homeassistant/")]
    told.end("done")
    removed = [post.topic for post in sender.posts if post.payload == "" and post.retain]
    assert removed == made
    assert [one.topic for one in publish_discovery.removed("homeassistant", "bot")] == made


def test_a_live_session_publishes_its_turns_marks_status_and_figures() -> None:
    sender = Noted()
    told = publication(sender)
    show = live_listener(told, "bot")
    turn = {"first_packet_ms": 250.0, "first_audible_ms": 300.0}
    for update in (
        updates.PhaseChanged("connecting"),
        updates.PhaseChanged("listening"),
        updates.Level("user", -20.0),
        updates.Words("user", 1, "my name is Ann"),
        updates.Mark(1, "speech_end", 0.0),
        updates.Mark(1, "first_audible", 300.0),
        updates.TurnOver(1, "ok", turn, "noisy"),
        updates.TurnOver(2, "interrupted", {"first_audible_ms": None}),
        updates.TurnOver(3, "ok", {"first_audible_ms": 9000.0}, latency_valid=False),
        updates.PhaseChanged("no-device", "unplugged"),
        updates.PhaseChanged("listening"),
        updates.Saved(Path("runs/live-1"), 2, {"first_audible_ms": (1, 300.0, 300.0)}),
        updates.PhaseChanged("ended"),
    ):
        show(update)
    told.end("done")
    statuses = ["online", "running", "waiting", "running", "done"]
    assert sender.at("/status") == statuses
    first = sender.at("/item/turn-1/event")
    assert [one["stage"] for one in first] == ["speech_end", "first_audible", "answered"]
    assert first[-1]["marks"] == turn
    assert first[-1]["condition"] == "noisy"
    last = sender.at("/endpoint/bot/stats")[-1]
    assert (last["n"], last["first_audible_ms"]["n"], last["first_audible_ms"]["p90"]) == (
        3,
        1,
        300,
    )
    assert (last["ok"], last["errors"], last["status"]) == (2, 0, {"interrupted": 1})
    assert sender.at("/item/turn-3/event")[-1]["latency_valid"] is False
    (summary,) = sender.at("/summary")
    assert summary["cells"][0]["metrics"]["first_audible_ms"]["p50"] == {"value": 300.0}
    assert not any("Ann" in post.payload for post in sender.posts)


def test_the_sentence_on_what_is_missing_counts_and_says_why() -> None:
    lost = Delivery(328, 12, "no broker at mqtt://h:1883: Connection refused")
    assert lost.words() == (
        "MQTT: 12 of 340 messages were not delivered: no broker at mqtt://h:1883: "
        "Connection refused"
    )
    assert Delivery(340, 0).words() == ""


def test_the_page_shows_what_is_published() -> None:
    sender = Noted()
    run = "bench-20260102-030405-abcd"
    told = Publication(sender, Mqtt(host="h"), run, Redactor(), FrozenClock())
    told.trial(trial("q1", first_packet_ms=412.5, first_audible_ms=498.2, reply_ms=2210.0))
    page = (Path(__file__).parent.parent / "docs" / "mqtt.md").read_text()
    shown = [json.loads(one) for one in re.findall(r"```json\n(.*?)```", page, re.DOTALL)]
    assert shown == [sender.at("/event")[-1], sender.at("/stats")[-1]]
    for status in get_args(Status):
        assert f"`{status}`" in page


class Unhurried(Noted):
    """A sender that gives other threads time to come in; notes whether one did."""

    def __init__(self) -> None:
        super().__init__()
        self.free, self.overlapped = Lock(), False

    def offer(self, post: Post) -> None:
        alone = self.free.acquire(blocking=False)
        self.overlapped |= not alone
        time.sleep(0.001)
        super().offer(post)
        if alone:
            self.free.release()


def test_threads_that_tell_at_a_time_lose_no_trial_and_begin_an_endpoint_once() -> None:
    sender = Unhurried()
    told = publication(sender)
    together = Barrier(8)

    def tell(number: int) -> None:
        together.wait(20)
        for one in range(5):
            told.trial(trial(f"q{number}-{one}", first_audible_ms=400.0))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(tell, range(8)))
    assert not sender.overlapped
    counts = [one["n"] for one in sender.at("/stats")]
    assert counts == [0, *range(1, 41)]
