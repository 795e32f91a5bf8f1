# Everything a newcomer needs: `make demo` and `make test`. Plain python3 with venv and pip suffices.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
BASIC := $(VENV)/.basic
# uv installs in a tenth of the time where it is there.
INSTALL := $(if $(shell command -v uv),uv pip install --quiet --python $(BIN)/python,$(BIN)/python -m pip install --quiet --disable-pip-version-check)

# Which tests stay in one process is said in tests/conftest.py; compiled tests are kept for the next run.
# Linear algebra has one thread each: two that wait for each other cost ten times the work.
TRY := PYTHONDONTWRITEBYTECODE= OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadscope --no-loadscope-reorder

# For researchers, taking every proposal; ages matter most. One method, so that it takes seconds.
DEMO_RELEASE := --for scientific --yes --matters birth_date -m mondrian --minutes 0.3

# Seven numbers an intruder might know of the 5,912 persons of the RAND health insurance experiment; the level is
# what microaggregation in threes gives. Transport is solved on samples of 500, which takes seconds.
DEMO_DATA := 'builtin:rand?per=person'
DEMO_COLUMNS := xage,educdec,income,disea,mhi,ghindx,num
DEMO_OPTIONS := -m 'mdav(k=3)' -m correlated-noise -m rank-swapping \
	--rank-by 'earth-movers-distance(records=500,draws=2)' --repeats 2 --points 4

.PHONY: help demo test prove lowest fuzz mutants check format bench docs dist audit clean services

help:  ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/'

$(BIN)/python:
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || $(MAKE) --no-print-directory system
	$(PYTHON) -m venv $(VENV)

$(STAMP): pyproject.toml | $(BIN)/python
	$(INSTALL) --editable '.[test]'
	@touch $@ $(BASIC)

# What the demo needs, and no more.
$(BASIC): pyproject.toml | $(BIN)/python
	$(INSTALL) --editable '.[tune]'
	@touch $@

# Debian ships python3 without venv; the package that has it needs root.
.PHONY: system
system:
	@echo "python3 has no venv here: installing Debian's python3-venv"
	@$$(test "$$(id -u)" = 0 || echo sudo) apt-get update -qq
	@$$(test "$$(id -u)" = 0 || echo sudo) apt-get install -y -qq python3-venv

demo: $(BASIC)  ## make a release of a messy file and try to find people in it; then compare three methods at equal risk
	@mkdir -p demo && $(BIN)/python examples/clinic.py demo/clinic.csv && head -3 demo/clinic.csv
	@echo "Somebody knows birthday, sex, ZIP code and day of admission of these patients. In the file without names:"
	@$(BIN)/python examples/intruder.py demo/clinic.csv demo/clinic.csv
	@echo "One command: sfumato release demo/clinic.csv $(DEMO_RELEASE)"
	@$(BIN)/sfumato release demo/clinic.csv $(DEMO_RELEASE) --out demo/release --overwrite
	@echo "The same somebody in demo/release/release.csv:"
	@$(BIN)/python examples/intruder.py demo/clinic.csv demo/release/release.csv
	@echo "Three methods, as safe as each other, on the RAND health insurance data:"
	@$(BIN)/sfumato compare $(DEMO_DATA) --columns $(DEMO_COLUMNS) $(DEMO_OPTIONS) \
		--report demo/report.html --overwrite
	@echo "Open demo/release/private/report.html (the release) and demo/report.html (the contest) in a browser."

check: $(STAMP)  ## format, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

# A real database server and a real browser; where they cannot be had, their tests are skipped with the reason.
# Without asking they are installed for root and in CI only.
HAS_POSTGRES := ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null 2>&1
HAS_CHROMIUM := command -v chromium >/dev/null 2>&1

services:  ## install a database server and a browser for the tests, with sudo unless you are root
	@$(HAS_POSTGRES) || $(MAKE) --no-print-directory debian PACKAGE=postgresql
	@$(HAS_CHROMIUM) || $(MAKE) --no-print-directory debian PACKAGE=chromium

.PHONY: services-if-allowed
services-if-allowed:
	@if test "$$(id -u)" = 0 || test -n "$$CI"; then $(MAKE) --no-print-directory services; else \
		{ $(HAS_POSTGRES); } || echo "no database server here: its tests are skipped (make services installs one)"; \
		{ $(HAS_CHROMIUM); } || echo "no browser here: its tests are skipped (make services installs one)"; fi

.PHONY: debian
debian:
	@echo "installing Debian's $(PACKAGE) for the tests"
	@root=$$(test "$$(id -u)" = 0 || echo sudo); \
		{ $$root apt-get update -qq && $$root apt-get install -y -qq $(PACKAGE) >/dev/null 2>&1; } \
		|| echo "$(PACKAGE) cannot be had here: its tests will be skipped"

test: services-if-allowed $(STAMP)  ## everything CI runs: check, docs, all tests
	@$(MAKE) --no-print-directory --jobs=2 --output-sync check docs  # each has use for one core
	$(TRY) -m 'not slow'

prove: $(STAMP) services-if-allowed  ## the slow tests, and every property in full
	SFUMATO_EFFORT=full $(TRY) -m prove

MINUTES ?= 10
fuzz: $(STAMP)  ## broken files of every kind, for MINUTES=10; what is new is kept in tests/fuzz/corpus
	SFUMATO_FUZZ_MINUTES=$(MINUTES) $(BIN)/python -m pytest -q -n 0 tests/fuzz

ROOM ?= all
mutants: $(STAMP)  ## do the tests notice? one change of the code at a time; ROOM=deciding or a file, SAMPLE=5 of each file
	PYTHONPATH=tests $(BIN)/python -m mutants $(ROOM) $(if $(SAMPLE),--sample $(SAMPLE))

# The tools that test are new; what is tested is as old as pyproject.toml allows.
lowest:  ## all tests with the oldest versions of other libraries that are allowed
	$(PYTHON) -m venv $(VENV)-lowest
	$(VENV)-lowest/bin/python -m pip install --quiet uv
	$(VENV)-lowest/bin/uv pip install --quiet --python $(VENV)-lowest/bin/python --resolution lowest-direct \
		--editable '.[all]' \
		'pytest>=9' 'pytest-xdist>=3.8' 'hypothesis>=6.140' 'openpyxl>=3.1.5'
	$(VENV)-lowest/bin/python -m pytest -n 2

format: $(STAMP)  ## format and mend what can be mended
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(STAMP)  ## speed, as ratios against a peer in one run; SMALL=1 for minutes instead of hours; NAMES="mdav noise"
	$(BIN)/python benchmarks/run.py $(NAMES) $(if $(SMALL),--small)

docs: $(STAMP)  ## build the documentation; a warning is an error
	$(BIN)/python -m sphinx -W --keep-going -q docs docs/_build/html
	@echo "docs: docs/_build/html/index.html"

# The same bytes from the same commit, on every machine: times in the archives are that of the commit.
dist: $(STAMP)  ## build the wheel, with its bill of materials (PEP 770), and the sdist
	rm -rf dist
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python -m hatchling build -d dist
	cd dist && sha256sum *

# In an environment of its own; needs the package index, which keeps the list of known faults.
audit:  ## list known vulnerabilities of the libraries that are installed with all extras
	$(PYTHON) -m venv $(VENV)-audit
	$(VENV)-audit/bin/python -m pip install --quiet pip-audit '.[all]'
	$(VENV)-audit/bin/pip-audit --local

clean:  ## remove what was built
	rm -rf $(VENV) $(VENV)-lowest $(VENV)-audit demo docs/_build docs/reference/generated build dist .pytest_cache .mypy_cache .ruff_cache .mutants
