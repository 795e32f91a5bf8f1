# Everything a newcomer needs: `make demo` and `make test`. Plain python3 with venv and pip suffices.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# Which tests stay in one process is said in tests/conftest.py; compiled tests are kept for the next run.
# Linear algebra has one thread each: two that wait for each other cost ten times the work.
TRY := PYTHONDONTWRITEBYTECODE= OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadgroup

# Seven numbers an intruder might know of the 5,912 persons of the RAND health insurance experiment; the level is
# what microaggregation in threes gives. Transport is solved on samples of 1,000, which takes seconds.
DEMO_DATA := 'builtin:rand?per=person'
DEMO_COLUMNS := xage,educdec,income,disea,mhi,ghindx,num
DEMO_OPTIONS := -m 'mdav(k=3)' -m correlated-noise -m hohne-noise -m rank-swapping \
	--rank-by 'earth-movers-distance(records=1000,draws=2)' --repeats 3 --points 7

.PHONY: help demo test prove lowest check format bench docs clean

help:  ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/'

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || $(MAKE) --no-print-directory system
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	@touch $@

# Debian ships python3 without venv; the package that has it needs root.
.PHONY: system
system:
	@echo "python3 has no venv here: installing Debian's python3-venv"
	@$$(test "$$(id -u)" = 0 || echo sudo) apt-get update -qq
	@$$(test "$$(id -u)" = 0 || echo sudo) apt-get install -y -qq python3-venv

demo: $(STAMP)  ## compare four methods at equal disclosure risk on built-in data, and write a report
	@mkdir -p demo
	@echo "Four methods, as safe as each other, on the RAND health insurance data:"
	@$(BIN)/sfumato compare $(DEMO_DATA) --columns $(DEMO_COLUMNS) $(DEMO_OPTIONS) \
		--report demo/report.html --overwrite
	@echo "Now compiling what other commands use, so that none waits for it (Ctrl-C leaves it for later):"
	@$(BIN)/sfumato doctor --warm >/dev/null
	@echo "Open demo/report.html in a browser to see the map, the distributions and the correlations."

check: $(STAMP)  ## format, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

# A real database server and a real browser; where they cannot be had, their tests are skipped with the reason.
.PHONY: services
services:
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null 2>&1 || \
		$(MAKE) --no-print-directory debian PACKAGE=postgresql
	@command -v chromium >/dev/null 2>&1 || $(MAKE) --no-print-directory debian PACKAGE=chromium

.PHONY: debian
debian:
	@echo "installing Debian's $(PACKAGE) for the tests"
	@root=$$(test "$$(id -u)" = 0 || echo sudo); \
		{ $$root apt-get update -qq && $$root apt-get install -y -qq $(PACKAGE) >/dev/null 2>&1; } \
		|| echo "$(PACKAGE) cannot be had here: its tests will be skipped"

test: check services  ## everything CI runs: check, all tests, docs
	$(TRY) -m 'not slow'
	@$(MAKE) --no-print-directory docs

prove: $(STAMP) services  ## the slow tests, and every property in full
	SFUMATO_EFFORT=full $(TRY) -m prove

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

bench: $(STAMP)  ## speed, as ratios against a peer in one run
	@for file in benchmarks/bench_*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

docs: $(STAMP)  ## build the documentation; a warning is an error
	$(BIN)/python -m sphinx -W --keep-going -q docs docs/_build/html
	@echo "docs: docs/_build/html/index.html"

clean:  ## remove what was built
	rm -rf $(VENV) $(VENV)-lowest demo docs/_build docs/reference/generated build dist .pytest_cache .mypy_cache .ruff_cache
