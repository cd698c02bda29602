# make demo: set up and run the comparison on embedded data to its verdict and report
# make test: set up and pass the tests
# make docs: build the documentation into site/

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
INSTALLED := $(VENV)/.installed
# Bytecode is compiled when a module is first imported: far less than all that pip would compile.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt
# Containers often set it. Nothing would then keep that bytecode, and each process compile 1,400 modules again.
unexport PYTHONDONTWRITEBYTECODE
EXTRAS := ray,slurm,features,examples,notebook

LOWEST := $(VENV)-lowest

.PHONY: demo test test-slow test-extras test-lowest pages docs report-image lint format setup clean

demo: $(INSTALLED)
	$(BIN)/lupi demo

test: $(READY)
	$(BIN)/python -m pytest -m "not slow" --numprocesses auto --dist worksteal

test-slow: $(READY)
	$(BIN)/python -m pytest -m slow --numprocesses auto --dist worksteal

test-extras: $(READY)
	$(PIP) -e ".[$(EXTRAS)]" \
		-e "src/lupi_paper[meteor]"
	$(BIN)/python -m pytest -m "extra and not slow" --numprocesses auto

# The lowest versions that pyproject.toml allows: an environment of its own, with the CUDA build of torch (5 GB).
test-lowest:
	$(PYTHON) -m venv $(LOWEST)
	$(PYTHON) tests/lowest.py > $(LOWEST)/pins.txt
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check -r $(LOWEST)/pins.txt -e . -e src/lupi_paper \
		pytest pytest-xdist hypothesis "setuptools<82"
	$(LOWEST)/bin/python -m pytest -m "not slow and not extra" -k "not export and not onnx and not pinned" \
		-o filterwarnings=default \
		--numprocesses auto tests/unit tests/golden

# Write the parts of the pages that come from code and published scores: settings, methods, verdicts, numbers.
pages: $(READY)
	$(BIN)/python tools/reference.py
	$(BIN)/python tools/results.py

docs: $(READY)
	$(PIP) -e ".[docs]"
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

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

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	@touch $(INSTALLED)

$(READY): $(INSTALLED) src/lupi_paper/pyproject.toml
	$(PIP) -e ".[dev]" -e src/lupi_paper
	@touch $(READY)

clean:
	rm -rf $(VENV) $(LOWEST) build dist site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
