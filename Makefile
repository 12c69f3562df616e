# Every target makes what it needs itself: a Python 3.11 or newer and make are enough.
#   make demo    run the quickstart notebook and show what it did
#   make test    all checks and all tests, browser included
#   make lab     open JupyterLab on notebooks/

.DEFAULT_GOAL := help
.PHONY: help demo demo-model ladder test agents-test kills lab notebooks front pictures bench bench-agreement bench-awaited bench-browser bench-faults docs lite lite-test binder dist release-check wheel-test \
	lint lint-types lint-rest format unit clean env-lab env-test env-bench env-docs env-lite env-local-model env-release
MAKEFLAGS += --no-builtin-rules --no-print-directory
# Where it is set, each of the many Pythons that are started here would compile everything anew.
unexport PYTHONDONTWRITEBYTECODE

# A pyenv shim answers to a name without being able to run it, so each candidate is tried.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3.14 python3 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$p && break; done)
BIN := .venv/bin
PY := $(BIN)/python
NOTEBOOKS := $(wildcard notebooks/*.ipynb)
PYTEST_ARGS ?=
# Folders in tests/, such as "engine store"; if left out all but those of the repository itself: docs, site, wheel (release).
PART ?=
# Three workers on the two cores of a small machine: one of them often waits for a browser or a kernel.
WORKERS ?= 3
# There something is slow to import that Jupyter takes along and that no test needs.
TESTS := PYTHONPATH=$(CURDIR)/tests/quick $(PY) -m pytest

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' Makefile | expand -t 20

demo: env-lab ## run the quickstart notebook; print the route, the state, where everything is
	@$(PY) scripts/demo.py

demo-model: env-local-model ## cast with a small language model that runs on this machine (Linux on x86-64)
	@$(PY) scripts/demo_model.py

ladder: env-local-model ## measure how that model answers each handoff protocol
	@nice $(PY) scripts/ladder.py

test: env-test lint ## all checks, all notebooks, all tests
	@$(PY) scripts/chromium.py
	@$(PY) scripts/oldest_kernel.py
	MATERIA_PROFILE_DIR=$(CURDIR)/build/profile $(TESTS) -n $(WORKERS) --dist loadgroup \
		--nbval --nbval-current-env --nbval-sanitize-with tests/nbval-sanitize.cfg $(NOTEBOOKS) tests $(PYTEST_ARGS)

unit: env-test ## the tests of the packages that need no browser; PART=engine takes those of one, PYTEST_ARGS="-k word" narrows them
	$(TESTS) -n $(WORKERS) --dist loadgroup -m "not browser" $(PYTEST_ARGS) $(if $(PART),$(PART:%=tests/%),tests --ignore=tests/release)

agents-test: env-test ## install the real coding agents, and check the command presets with them; a stub answers for models
	@nice $(PY) scripts/agent_programs.py $(PYTEST_ARGS)

kills: env-test ## kill processes at 500 moments of casts with files, lanes and forks, and compare what is left
	MATERIA_KILLS=500 nice $(TESTS) -n $(WORKERS) tests/store/test_killed_processes.py $(PYTEST_ARGS)

lab: env-lab ## open JupyterLab on notebooks/
	@mkdir -p notebooks
	@$(BIN)/jupyter trust $(NOTEBOOKS) >/dev/null  # else Lab shows no pictures in them
	$(BIN)/jupyter lab --ServerApp.root_dir=notebooks

notebooks: env-lab ## execute notebooks/ and store them with their outputs, in the one way that is stored
	$(PY) scripts/run_notebooks.py

front: env-test ## bundle the front end into what widgets load; needs npm
	@$(PY) scripts/make_front.py

pictures: env-test ## take the pictures of the documentation again, in a real JupyterLab
	@$(PY) scripts/chromium.py
	$(PY) -m pytest -q tests/browser/pictures.py

bench: env-bench ## measure visits per second, compared with transitions, burr and plain file writes
	$(PY) benchmarks/bench.py
	@$(MAKE) bench-agreement
	@$(MAKE) bench-browser

bench-agreement: env-test ## mutation score and false alarms of saved tests, and comparisons with a second engine
	PYTHONPATH=tests:tests/helpers:tests/insight:tests/cast/views $(PY) benchmarks/agreement.py

bench-awaited: env-test ## measure the delays of a hundred casts in one event loop
	$(PY) benchmarks/awaited.py

bench-browser: env-test ## from a call in the kernel to the frame in the browser that shows it
	@$(PY) scripts/chromium.py
	PYTHONPATH=tests:tests/helpers:scripts $(PY) benchmarks/browser_frames.py

bench-faults: env-test ## plant faults in the engine and count those that the comparison with a second engine finds
	$(PY) benchmarks/planted_faults.py

docs: env-docs ## build the site of the documentation into build/site; a broken link is an error
	@$(PY) scripts/make_site.py

lite: env-lite ## build the site that runs the notebooks in the browser alone into build/lite, and test it; needs npm
	@$(PY) scripts/make_lite.py
	@$(MAKE) lite-test

lite-test: env-test ## run lessons in that site with the network cut off
	@$(PY) scripts/chromium.py
	MATERIA_LITE_SITE=$(CURDIR)/build/lite $(PY) -m pytest -q tests/browser/test_lite.py

binder: env-test ## make the environment that binder/ describes, and run the quickstart in it
	$(PY) -m pytest -q -rs tests/release/test_binder.py tests/release/binder_checks.py

dist: env-release ## build what is published into dist/, and check it
	@rm -rf dist
	SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct 2>/dev/null || echo 1580601600)} \
		$(PY) -m build --no-isolation --outdir dist .
	$(PY) -m twine check --strict dist/*
	$(PY) -m check_wheel_contents dist/*.whl

release-check: env-release ## what is still missing before a release, and the licences of what is shipped along
	@$(PY) scripts/release_check.py

wheel-test: env-test ## as a stranger: the wheel alone in fresh environments, each extra by itself, other Pythons
	$(PY) -m pytest -rs -n $(WORKERS) $(PYTEST_ARGS) tests/release/wheel_checks.py

lint: env-test ## ruff, mypy, layers, file access, names and English; types, style and tests of the front end
	@$(MAKE) -j 2 lint-types lint-rest

lint-types:
	$(BIN)/mypy

lint-rest:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo
	@$(PY) scripts/lint_files.py
	@$(PY) scripts/check_language.py
	@$(PY) scripts/make_front.py --check

format: env-test ## let ruff write what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## remove the environment and everything that was built
	rm -rf .venv build dist node_modules .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

env-lab env-test env-bench env-docs env-lite env-local-model env-release:
	@test -n "$(PYTHON)" || { echo "No Python 3.11 or newer found; name one with PYTHON=..." >&2; exit 1; }
	@$(PYTHON) scripts/bootstrap.py $(@:env-%=%)
