# make demo: set up and run the comparison on embedded data to its verdict and report
# make test: set up and pass the tests

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
EXTRAS := ray,slurm,meteor,features,examples

.PHONY: demo test test-slow test-extras report-image lint format setup clean

demo: $(READY)
	$(BIN)/lupi demo

test: $(READY)
	$(BIN)/python -m pytest -m "not slow" --numprocesses auto --dist worksteal

test-slow: $(READY)
	$(BIN)/python -m pytest -m slow

test-extras: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[$(EXTRAS)]"
	$(BIN)/python -m pytest -m "extra and not slow" --numprocesses auto

REPORT ?= runs/demo/report.html

report-image:
	chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --virtual-time-budget=8000 \
		--window-size=1200,1500 --screenshot=docs/images/report.png "file://$(abspath $(REPORT))"

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $(READY)

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
