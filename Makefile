# `make demo` and `make test` set up everything they need on a fresh machine with Python 3.11 or newer.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/installed

.PHONY: install demo test test-all test-extras test-lowest lint docs bench torture clean

install: $(INSTALLED)

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "igcd needs Python 3.11 or newer")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[learn,review,dev,docs]'
	touch $(INSTALLED)

demo: install
	rm -rf runs/demo
	$(BIN)/igcd demo --out runs/demo

# Tests start many processes: what is compiled once is kept, also where the environment asks Python to keep nothing.
test test-all test-extras test-lowest: export PYTHONDONTWRITEBYTECODE =

# What a change needs. The workflow on GitHub runs `make test-all`, which adds the tests marked slow, and coverage: counting
# lines takes half as much time again.
test: install
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal -m "not slow"

test-all: install
	$(BIN)/python -m pytest --cov --numprocesses auto --dist worksteal

# Tests of `igcd embed --ray`, `igcd count --ray` and `--engine openvino`, which are skipped where the packages are missing: here
# a skip for want of an extra is a failure. One process, because a Ray cluster has the machine for itself.
test-extras: install
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[ray,openvino,scale]'
	mkdir -p build
	$(BIN)/python -m pytest -rs tests/embedding > build/extras.txt || (cat build/extras.txt; exit 1)
	cat build/extras.txt
	! grep -q "the extra" build/extras.txt

# The same tests with the lowest versions that pyproject.toml allows, in an environment of their own; needs uv.
test-lowest:
	uv venv --quiet --clear --python 3.11 build/lowest
	uv pip install --quiet --python build/lowest --resolution lowest-direct --torch-backend cpu --editable '.[learn,review,dev]'
	build/lowest/bin/python -m pytest --numprocesses auto --dist worksteal -m "not slow"

# The site in build/site, to be opened without a server. Stops at a dead link, or at a page that has no place in the menu.
docs: install
	$(BIN)/python -m tools.gather_docs
	$(BIN)/zensical build --strict --clean

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: install
	for name in matching reading views trunk_cache density decoding inat2021; do \
		echo "== $$name"; $(BIN)/python benchmarks/$$name.py || exit 1; done
	$(BIN)/python benchmarks/fieldguide.py speed

# Mutated inputs and images, kills, a full disk, a crowd on the review page: counts in runs/torture-SEED/torture.json.
MINUTES ?= 30
SEED ?= 0
torture: install
	$(BIN)/python -m tools.torture --minutes $(MINUTES) --seed $(SEED) --out runs/torture-$(SEED)

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
