# Everything runs in a virtual environment of the project's own, made on first use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := tacita tests examples papers bench docs
PYTEST = $(BIN)/python -m pytest --numprocesses 2 --dist loadfile --durations 20

.DEFAULT_GOAL := help
.PHONY: help demo federation-demo test test-long test-variants test-all check format lint types examples docs notebooks screenshots bench chaos clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 18

$(VENV)/base: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/test: $(VENV)/base
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test,deploy,docs,watch]'
	@touch $@

demo: $(VENV)/base ## install, run the demo, say where its report is
	$(BIN)/tacita demo

federation-demo: $(VENV)/test ## hub, coordinator and four hospitals as processes of their own
	$(BIN)/python examples/federation/demo.py

test: $(VENV)/test ## install what tests need and run all but the long ones
	$(PYTEST) -m 'not long and not variant'

test-long: $(VENV)/test ## the long ones: kills, chaos, schedules, papers
	$(PYTEST) -m 'long and not variant'

test-variants: $(VENV)/test ## variants of tests of which make test runs a few
	$(PYTEST) -m variant

test-all: test test-long test-variants ## all tests

format: $(VENV)/test ## format the code in place
	$(BIN)/ruff format $(SOURCES)

lint: $(VENV)/test ## formatting and lint
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)

types: $(VENV)/test ## static types
	$(BIN)/basedpyright --pythonpath $(BIN)/python

examples: $(VENV)/test ## run every example
	ls examples/*.py | xargs -t -P 2 -n 1 $(BIN)/python

docs: $(VENV)/test ## the documentation as a site in build/site, without network
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

notebooks: $(VENV)/test ## run every notebook again and keep what it shows
	$(BIN)/python -m tests.notebooks

check: lint types test examples ## all that must hold before a change lands

chaos: $(VENV)/test ## hours of kills, full disks, old folders, spoilt inputs; prints a tally
	$(BIN)/python -m bench.chaos --kills 10000
	$(BIN)/python -m bench.chaos --only sums --trials 200 --events 8
	$(BIN)/python -m bench.fuzz --inputs 1000000

bench: $(VENV)/test ## measure against peers, ratios printed
	$(BIN)/python -m bench.simulator
	$(BIN)/python -m bench.million
	$(BIN)/python -m bench.million_networks
	$(BIN)/python -m bench.recording
	$(BIN)/python -m bench.first_result
	$(BIN)/python -m bench.mesh
	$(BIN)/python -m bench.graph_delivery
	$(BIN)/python -m bench.gtv
	$(BIN)/python -m bench.dp_norm
	$(BIN)/python -m bench.clipping
	$(BIN)/python -m bench.networks
	$(BIN)/python -m bench.resnet_profile
	$(BIN)/python -m bench.batches
	$(BIN)/python -m bench.page
	$(BIN)/python -m bench.secure
	$(BIN)/python -m bench.federation
	$(BIN)/python -m bench.secure_federation
	$(BIN)/python -m bench.secure_machines
	$(BIN)/python -m bench.fed_plt_table_2
	$(BIN)/python -m bench.accuracy
	$(BIN)/python -m bench.truth
	$(BIN)/python -m bench.audit_power
	$(BIN)/python -m bench.mixing
	$(BIN)/python -m bench.robust
	$(BIN)/python -m bench.under_attack
	$(BIN)/python -m bench.planted_graph
	$(BIN)/python -m bench.learned_fmi
	$(BIN)/python -m bench.learned_scale
	$(BIN)/python -m bench.watch

screenshots: $(VENV)/test ## pictures of report and live page in build/screenshots, where chromium is there
	$(BIN)/python -m tests.browser.screenshots

clean: ## remove the virtual environment and caches
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis build *.egg-info
