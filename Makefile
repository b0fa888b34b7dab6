# make bench   install the locked versions into .venv and run the main job on the embedded assistant
# make live    install them and talk to the embedded assistant by microphone
# make test    install and run all tests
# make fuzz    feed every codec and every reader whatever comes, for FUZZ_S seconds in all
# make soak    2,000 trials of which a tenth is broken on purpose: each has to be accounted for
# make kill-test   kill -9 at POINTS random points, and full disks: what is resumed is whole
# make coverage   say what each protocol's own tests leave out of its files
# make conformance   install genuine servers of others and talk to them (CONTRIBUTING.md)
.PHONY: bench bench-full live test conformance conformance-moshi fuzz soak kill-test coverage check install install-dev lock lock-genuine format clean notice
.DELETE_ON_ERROR:

PYTHON ?= $(firstword $(foreach name,python3.11 python3.12 python3.13 python3.14 python3,$(shell command -v $(name))))
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
CALIBRATE_S ?= 20

bench: notice install
	@$(BIN)/voxmeter calibrate --seconds $(CALIBRATE_S)
	@$(BIN)/voxmeter run --name bench --limit 8

bench-full: notice install
	@$(BIN)/voxmeter calibrate --seconds $(CALIBRATE_S)
	@$(BIN)/voxmeter run --name bench-full

live: notice install
	@$(BIN)/voxmeter live

test: install-dev
	$(BIN)/python -m pytest

# Each in an environment of its own, as they are other people's programs and agree on no versions.
GENUINE := $(basename $(notdir $(wildcard tests/genuine/*.txt)))
conformance: install-dev $(GENUINE:%=.genuine/%/installed)
	GENUINE=required $(BIN)/python -m pytest tests/genuine

# Moshi's own server stands on torch: several GB, so it is not part of the rest.
conformance-moshi: install-dev .genuine/moshi/installed
	$(BIN)/python -m pytest tests/genuine/test_moshi_server.py

.genuine/moshi/installed: tests/genuine/moshi.in
	$(PYTHON) -m venv --clear .genuine/moshi
	.genuine/moshi/bin/python -m pip --disable-pip-version-check install --quiet -r $<
	@touch $@

# Feeds whatever comes to every codec and to every reader of what others wrote, each in its turn;
# FUZZ_S=3600 for a long look. What is found stays in .fuzz.
FUZZ_S ?= 60
FUZZED := codecs audio stream config lines run_folder judgement
fuzz: install $(FUZZED:%=fuzz-%)
	@echo "nothing was found"

# Atheris lies in an environment of its own; the readers need the packages of ours.
fuzz-%: install .genuine/atheris/installed
	@mkdir -p .fuzz
	@seconds=$$(($(FUZZ_S) / $(words $(FUZZED)))); seconds=$$((seconds > 0 ? seconds : 1)); \
	echo "fuzz $*: $$seconds s"; \
	PYTHONPATH=src ATHERIS=$$(echo .genuine/atheris/lib/python3*/site-packages) \
	$(BIN)/python tests/fuzz_$(if $(filter codecs,$*),codecs.py,inputs.py $*) .fuzz/$* \
	-max_total_time=$$seconds -timeout=30 -rss_limit_mb=3000 -verbosity=0 -artifact_prefix=.fuzz/$*-

.genuine/%/installed: tests/genuine/%.txt
	$(PYTHON) -m venv --clear .genuine/$*
	.genuine/$*/bin/python -m pip --disable-pip-version-check install --quiet --require-hashes -r $<
	@touch $@

# Against the metronome and a proxy that breaks connections; minutes. SOAK="--trials 20000" for longer.
SOAK ?=
soak: install-dev
	PYTHONPATH=src $(BIN)/python tests/soak.py $(SOAK)

# Every resumed run has to equal one that nothing disturbed. SEED=2 tries other points.
POINTS ?= 200
SEED ?= 1
kill-test: install-dev
	PYTHONPATH=src $(BIN)/python tests/kill_points.py --points $(POINTS) --seed $(SEED)
	PYTHONPATH=src $(BIN)/python tests/full_disk.py --points $$(( ($(POINTS) + 3) / 4 )) --seed $(SEED)

# What the tests of each protocol leave out of its files: nothing.
coverage: install-dev
	$(BIN)/python tests/own_coverage.py

check: install-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_layers.py

format: install-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

notice:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "voxmeter needs Python 3.11 or newer; this is $$($(PYTHON) --version). Set one with: make bench PYTHON=/path/to/python3.11"; exit 2; }
	@test -e $(VENV)/installed || PYTHONPATH=src $(PYTHON) -B -m voxmeter.client.notice

install: $(VENV)/installed
install-dev: $(VENV)/installed-dev

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: requirements.lock pyproject.toml | $(VENV)/bin/python
	$(PIP) install --quiet --require-hashes -r requirements.lock
	$(PIP) install --quiet --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/installed-dev: requirements-dev.lock $(VENV)/installed
	$(PIP) install --quiet --require-hashes -r requirements-dev.lock
	@touch $@

# The lock files hold names, versions and hashes for every platform, and no index.
COMPILE := $(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes \
	--no-header --no-annotate --quiet
LOCK := $(COMPILE) pyproject.toml --extra local --extra opus --extra fast --extra live --extra mqtt --group build
lock: install-dev
	$(PIP) install --quiet uv
	$(LOCK) -o requirements.lock
	$(LOCK) --extra dev --extra conditions --extra build --extra parquet --extra echo --extra ray -c requirements.lock -o requirements-dev.lock

# make lock-genuine NAMES=pipecat locks that one alone.
NAMES ?= $(filter-out moshi,$(basename $(notdir $(wildcard tests/genuine/*.in))))
lock-genuine: install-dev
	$(PIP) install --quiet uv
	@for name in $(NAMES); do $(COMPILE) tests/genuine/$$name.in -o tests/genuine/$$name.txt || exit; done

clean:
	rm -rf $(VENV) .genuine .fuzz build dist *.egg-info src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
