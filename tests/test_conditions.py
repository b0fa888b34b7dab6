"""Conditions as they are written, drawn, and fitted to the suites of a bench."""

from __future__ import annotations

import importlib.util
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxmeter.client import conditions, config
from voxmeter.client.bench import Bench
from voxmeter.client.bench_suites import load_suites
from voxmeter.client.cli import main
from voxmeter.client.effects import catalog, draws, steps
from voxmeter.client.run import prepare
from voxmeter.endpoints.errors import MissingExtraError, UserError
from voxmeter.suites.suite import Item, Recording, Spoken, Suite

PAGE = Path(__file__).parent.parent / "docs" / "conditions.md"
ENDPOINT = '[[endpoint]]\nname = "m"\nbuiltin = "echo"\n'
DEMO = '[[suite]]\nkind = "demo"\n'
TEXTS = '[[suite]]\nkind = "jsonl"\nname = "texts"\npath = "texts.jsonl"\n'
LIBRARY = sorted(name for name, effect in catalog.EFFECTS.items() if effect.library)
OURS = sorted(name for name, effect in catalog.EFFECTS.items() if effect.function)


def load(folder: Path, chain: str, suite: str = DEMO, name: str = "x") -> Bench:
    file = folder / "bench.toml"
    file.write_text(f'{ENDPOINT}{suite}[[condition]]\nname = "{name}"\nchain = {chain}\n')
    return config.load(file)


def texts(folder: Path, count: int = 3) -> None:
    lines = [{"id": f"t{n}", "text": f"Text {n}.", "kind": "open"} for n in range(count)]
    (folder / "texts.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def chain_of(bench: Bench) -> tuple[dict[str, Any], ...]:
    return bench.conditions[0].chain


@pytest.mark.parametrize(
    ("chain", "line"),
    [
        ('[{effect = "gausian-noise"}]', 'step 1: unknown effect "gausian-noise"; did you mean'),
        ("[{snr_db = 3}]", 'step 1 has no effect; write {effect = "..."}'),
        (
            '[{effect = "gain"}, {effect = "pitch", semitone = 3}]',
            'step 2 (pitch): unknown parameter "semitone"; did you mean "semitones"?',
        ),
        ('[{effect = "tempo", factor = 3}]', "step 1 (tempo) factor is 3; write 0.5 to 2"),
        (
            '[{effect = "gain", gain_db = [3, -3]}]',
            "step 1 (gain) gain_db is [3, -3]; write the lower end first",
        ),
        (
            '[{effect = "gain", gain_db = [1, 2, 3]}]',
            "step 1 (gain) gain_db is [1, 2, 3]; write a number, or a range [low, high]",
        ),
        (
            '[{effect = "gain", gain_db = "loud"}]',
            'step 1 (gain) gain_db is the text "loud"; write a number, or a range [low, high]',
        ),
        ('[{effect = "gain", gain_db = true}]', "step 1 (gain) gain_db is True; write a number"),
        (
            '[{effect = "bit-crush", bits = 7.5}]',
            "step 1 (bit-crush) bits is 7.5; write a whole number",
        ),
        (
            '[{effect = "low-pass", rolloff_db_per_octave = 18}]',
            "step 1 (low-pass) rolloff_db_per_octave is 18; write a multiple of 12",
        ),
        (
            '[{effect = "telephone", law = "b"}]',
            'step 1 (telephone) law is the text "b"; write "mu" or "a"',
        ),
        (
            '[{effect = "telephone", low_hz = [300, 1000], high_hz = 2000}, {effect = "nothing"}]',
            'step 2: unknown effect "nothing"',
        ),
        ('[{effect = "babble", path = 3}]', "step 1 (babble) path is no text; write the path"),
        (
            '[{effect = "gain", path = "x.wav"}]',
            'step 1 (gain): unknown parameter "path"; known: gain_db',
        ),
        ('[{effect = "one-of"}]', "step 1 (one-of): effects is missing; write effects ="),
        (
            '[{effect = "one-of", effects = ["gain", "gian"]}]',
            'step 1 (one-of) effects 2: unknown effect "gian"; did you mean "gain"?',
        ),
        (
            '[{effect = "one-of", effects = ["gain", 3]}]',
            'step 1 (one-of) effects 2 is no step; write {effect = "..."}',
        ),
        (
            '[{effect = "one-of", effects = [{effect = []}]}]',
            'step 1 (one-of) effects 1 has no effect; write {effect = "..."}',
        ),
        (
            '[{effect = "one-of", effects = ["speaker"]}]',
            "step 1 (one-of) effects 1: speaker cannot be one of several; write it as a step",
        ),
        ('[{effect = "speaker"}]', 'step 1 (speaker): voice is missing; write voice = "piper"'),
        ('[{effect = "speaker", voice = []}]', "step 1 (speaker): voice is no name; write"),
        (
            '[{effect = "gain"}, {effect = "speaker", voice = "piper"}]',
            "step 2: speaker comes after another effect; write it first",
        ),
        ('"nois"', 'no ready chain is called "nois"; did you mean "noise"?'),
    ],
)
def test_what_is_wrong_with_a_chain_is_one_line_with_a_cure(
    tmp_path: Path, chain: str, line: str
) -> None:
    with pytest.raises(UserError) as caught:
        load(tmp_path, chain)
    place = f'{tmp_path / "bench.toml"}: [[condition]] "x" chain: '
    assert str(caught.value).startswith(place + line)
    assert "\n" not in str(caught.value)


def test_a_chain_is_recorded_with_every_default_written_out(tmp_path: Path) -> None:
    bench = load(tmp_path, '[{effect = "low-pass", cutoff_hz = 1000}]')
    whole = {"effect": "low-pass", "cutoff_hz": 1000, "rolloff_db_per_octave": [12, 24]}
    assert chain_of(bench) == (whole,)
    assert config.resolved(bench)["condition"] == [{"name": "x", "chain": [whole]}]
    assert config.reread(config.resolved(bench), "run.json").conditions == bench.conditions


@pytest.mark.parametrize("name", catalog.READY)
def test_a_ready_chain_goes_by_the_name_of_voxevals_condition(tmp_path: Path, name: str) -> None:
    names = [effect for effect, _ in steps.effects(chain_of(load(tmp_path, f'"{name}"')))]
    assert names == list(catalog.READY[name])


def test_voxevals_environment_is_one_of_nine_effects_and_its_noise_one_of_four() -> None:
    assert len(catalog.READY["environment"]) == 9
    assert catalog.READY["env_acoustics"] == catalog.READY["environment"]
    assert len(catalog.READY["noise"]) == 4
    assert catalog.EFFECTS["pitch"].parameters == (catalog.Number("semitones", -12, 12, (-5, 5)),)
    assert catalog.EFFECTS["tempo"].parameters == (catalog.Number("factor", 0.5, 2, (0.5, 2)),)


@pytest.mark.parametrize("name", OURS)
def test_every_effect_can_be_used_without_parameters_and_draws_within_its_ranges(
    name: str,
) -> None:
    chain = steps.checked([{"effect": name}])
    for item in range(50):
        (drawn,) = draws.drawn(chain, f"0/x/s/{item}")
        for parameter in catalog.EFFECTS[name].parameters:
            value = drawn.values[parameter.name]
            if isinstance(parameter, catalog.Word):
                assert value in parameter.words
                continue
            low, high = steps.ends(chain[0][parameter.name])
            for one in value if isinstance(value, list) else [value]:
                assert isinstance(one, int | float)
                assert low <= one <= high
        assert steps.checked([drawn.row()] if name != "seven-band-eq" else chain)


def test_draws_depend_on_the_seed_alone_and_not_on_other_parameters() -> None:
    wide = steps.checked([{"effect": "low-pass"}])
    fixed = steps.checked([{"effect": "low-pass", "rolloff_db_per_octave": 12}])
    for item in map(str, range(20)):
        (one,), (same,), (other,) = (draws.drawn(made, item) for made in (wide, wide, fixed))
        assert one == same
        assert one.values["cutoff_hz"] == other.values["cutoff_hz"]
    values = {draws.drawn(wide, str(item))[0].values["cutoff_hz"] for item in range(100)}
    assert len(values) == 100


def test_two_steps_of_one_effect_draw_each_its_own() -> None:
    first, second = draws.drawn(steps.checked([{"effect": "gain"}, {"effect": "gain"}]), "0/x/s/a")
    assert first.values != second.values


def test_a_range_is_drawn_evenly_and_frequencies_as_they_are_heard() -> None:
    gains = steps.checked([{"effect": "gain", "gain_db": [0, 10]}])
    drawn = [float(str(draws.drawn(gains, str(n))[0].values["gain_db"])) for n in range(2000)]
    assert sum(drawn) / 2000 == pytest.approx(5, abs=0.25)
    cuts = steps.checked([{"effect": "low-pass", "cutoff_hz": [150, 7500]}])
    heard = [float(str(draws.drawn(cuts, str(n))[0].values["cutoff_hz"])) for n in range(2000)]
    middle = 700 * ((1 + 150 / 700) * (1 + 7500 / 700)) ** 0.5 - 700
    assert sum(one < middle for one in heard) / 2000 == pytest.approx(0.5, abs=0.04)


def test_one_of_draws_every_effect_about_as_often() -> None:
    chain = steps.checked(steps.ready("environment"))
    counts = Counter(draws.drawn(chain, str(n))[0].effect for n in range(1800))
    assert set(counts) == set(catalog.READY["environment"])
    assert min(counts.values()) > 140
    assert max(counts.values()) < 260


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=5,
)
names = [*catalog.EFFECTS, "effect", "path", "voice", "effects", "snr_db", "gain_db", "factor"]


@given(st.lists(st.dictionaries(st.sampled_from(names) | st.text(max_size=8), json_values)))
def test_any_steps_are_a_chain_or_a_problem_with_a_cure(chain: list[dict[str, Any]]) -> None:
    _chain_or_problem(chain)


@given(st.sampled_from(list(catalog.EFFECTS)), st.data())
def test_any_values_of_an_effect_are_a_chain_or_a_problem(name: str, data: st.DataObject) -> None:
    keys = [*(one.name for one in catalog.EFFECTS[name].parameters), "voice", "effects", "path"]
    values = data.draw(st.dictionaries(st.sampled_from(keys), json_values, max_size=2))
    _chain_or_problem([{"effect": name} | values])


def _chain_or_problem(chain: list[dict[str, Any]]) -> None:
    try:
        made = steps.checked(chain)
    except ValueError as error:
        found, cure = error.args
        assert "\n" not in found + cure
        return
    assert steps.checked(made) == made
    assert len(draws.drawn(made, "seed")) == len(made)


def _shown(value: object) -> str:
    ends = value if isinstance(value, tuple) else (value,)
    text = ", ".join(f"{one:g}" for one in ends)
    return f"[{text}]" if isinstance(value, tuple) else text


def _range_of(parameter: catalog.Number) -> str:
    if parameter.step > 1:
        count = round((parameter.highest - parameter.lowest) / parameter.step) + 1
        return ", ".join(f"{parameter.lowest + n * parameter.step:g}" for n in range(count))
    return f"{parameter.lowest:g} to {parameter.highest:g}"


def test_the_page_has_every_effect_and_parameter_with_its_default_and_range() -> None:
    text = PAGE.read_text().partition("## Effects")[2].partition("### Ready chains")[0]
    found: dict[tuple[str, str], tuple[str, str]] = {}
    marked: set[str] = set()
    name = ""
    for line in re.findall(r"^\|(.*)\|$", text, re.MULTILINE)[2:]:
        effect, parameter, default, _, limits = (cell.strip() for cell in line.split("|"))
        name = effect.partition("`")[2].partition("`")[0] or name
        marked |= {name} if effect.endswith(" L") else set()
        found[name, parameter.split("`")[1]] = (default, limits)
    for name, effect in catalog.EFFECTS.items():
        for one in effect.parameters:
            if isinstance(one, catalog.Word):
                assert found.pop((name, one.name))[0] == f'`"{one.words[0]}"`'
            else:
                assert found.pop((name, one.name)) == (_shown(one.default), _range_of(one)), name
        if effect.file:
            assert found.pop((name, "path"))[0].startswith("our ")
    assert set(found) == {("speaker", "voice"), ("one-of", "effects")}
    assert marked == set(LIBRARY)


def test_the_blocks_of_the_page_can_be_pasted(tmp_path: Path) -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    file = tmp_path / "bench.toml"
    file.write_text(ENDPOINT + DEMO + block)
    assert [one.name for one in config.load(file).conditions] == [
        "street",
        "noise",
        "mine",
        "other-voice",
    ]


def test_a_condition_that_nobody_knows_is_refused_before_a_run(tmp_path: Path) -> None:
    suite = Suite("mine", "of-a-plug-in", (), conditions=("alloy_noise",))
    bench = load(tmp_path, '[{effect = "gain"}]')
    table = bench.suites[0].model_copy(update={"conditions": ("clean", "alloy_nois")})
    with pytest.raises(UserError) as caught:
        conditions.cast(bench, table, suite)
    assert str(caught.value) == (
        f'{tmp_path / "bench.toml"}: [[suite]] "mine" conditions: '
        'unknown condition "alloy_nois"; did you mean "alloy_noise"?'
    )


def test_a_suites_own_conditions_need_no_table_and_may_have_none(tmp_path: Path) -> None:
    suite = Suite("mine", "of-a-plug-in", (), conditions=("alloy_noise",))
    bench = load(tmp_path, '[{effect = "gain"}]', DEMO, "alloy_noise")
    own = bench.suites[0].model_copy(update={"conditions": ("alloy_noise",)})
    assert conditions.cast(bench.model_copy(update={"conditions": ()}), own, suite) is suite
    with pytest.raises(UserError, match="has recordings of its own for"):
        conditions.cast(bench, own, suite)


def test_another_voice_speaks_texts_and_is_checked_before_a_run(tmp_path: Path) -> None:
    texts(tmp_path, 40)
    bench = load(tmp_path, '[{effect = "speaker", voice = ["espeak-ng", "piper"]}]', TEXTS)
    (suite,) = load_suites(bench)
    spoken = {item.item: suite.asked(item, "x").recipe[0] for item in suite.items}
    assert {one.speaker for one in spoken.values() if isinstance(one, Spoken)} == {
        "espeak-ng",
        "piper",
    }
    for item in suite.items:
        assert suite.asked(item, "clean") is item
        again = draws.drawn(chain_of(bench), conditions.seed_of(0, "x", item))[0]
        assert spoken[item.item] == Spoken(f"Text {item.item[1:]}.", str(again.values["voice"]))
    unknown = load(tmp_path, '[{effect = "speaker", voice = "nobody"}]', TEXTS)
    with pytest.raises(UserError, match="voice 'nobody': no such voice"):
        prepare(unknown)


def test_another_voice_cannot_speak_a_recording(tmp_path: Path) -> None:
    bench = load(tmp_path, '[{effect = "speaker", voice = "piper"}]')
    with pytest.raises(UserError) as caught:
        load_suites(bench)
    assert '[[suite]] "demo" conditions: "x" has another voice speak, and item' in str(caught.value)
    assert str(caught.value).endswith("list the suite's conditions without it")


def test_a_suites_own_variant_is_still_asked_where_another_condition_changes_the_voice(
    tmp_path: Path,
) -> None:
    item = Item("mine", "a", "open", (Spoken("Hello.", "hibari"),))
    echo = Item("mine", "a", "open", (Recording(Path("echo.wav")),))
    own = Suite("mine", "k", (item,), conditions=("echo",), variant=lambda _item, _name: echo)
    bench = load(tmp_path, '[{effect = "speaker", voice = "piper"}]')
    table = bench.suites[0].model_copy(update={"conditions": ("clean", "echo", "x")})
    made = conditions.cast(bench, table, own)
    assert made.asked(item, "clean") is item
    assert made.asked(item, "echo") is echo
    assert made.asked(item, "x").recipe == (Spoken("Hello.", "piper"),)


@pytest.mark.parametrize("name", LIBRARY)
def test_a_missing_library_is_named_before_a_run_with_what_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def find_spec(package: str, *rest: object) -> object:
        return None if package == "audiomentations" else importlib.util.find_spec(package)

    monkeypatch.setattr(conditions, "find_spec", find_spec)
    bench = load(tmp_path, f'[{{effect = "one-of", effects = ["gain", "{name}"]}}]')
    with pytest.raises(MissingExtraError) as caught:
        prepare(bench)
    assert str(caught.value) == (
        f'{tmp_path / "bench.toml"}: [[condition]] "x" effect {name}: '
        "needs the package audiomentations; pip install 'voxmeter[conditions]'"
    )
    assert prepare(bench, only={"condition": ["clean"]}).plan.per_endpoint == 32


def test_a_path_without_sounds_is_found_before_a_run(tmp_path: Path) -> None:
    bench = load(tmp_path, '[{effect = "babble", path = "crowd"}]')
    with pytest.raises(UserError, match=r'"x" effect babble path: no such file; name a sound'):
        prepare(bench)
    (tmp_path / "crowd").mkdir()
    with pytest.raises(UserError, match="crowd holds no sound files"):
        prepare(bench)
    (tmp_path / "crowd" / "one.wav").write_bytes(b"")
    assert prepare(bench).plan.per_endpoint == 64


def test_check_tells_of_conditions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    load(tmp_path, '[{effect = "one-of", effects = ["gain", "babble"]}, {effect = "gain"}]')
    assert main(["check", "--offline", str(tmp_path / "bench.toml")]) == 0
    assert "ok   condition x: gain or babble, then gain\n" in capsys.readouterr().out
    load(tmp_path, '[{effect = "room-impulse-response", path = "hall.wav"}]')
    assert main(["check", "--offline", str(tmp_path / "bench.toml")]) == 2
    assert "FAIL condition x: " in capsys.readouterr().out
