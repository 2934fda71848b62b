# Everything that a fresh machine needs is python (3.11 or later) and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
export HF_HUB_OFFLINE ?= 1
export LITELLM_LOCAL_MODEL_COST_MAP ?= True

# A strict editable install is a tree of links: it must be repeated when a source file is added or removed.
FOLDERS := cli metrics optimize programs signatures
SOURCES := $(shell find $(FOLDERS) -type f \( -name '*.py' -o -name '*.json' -o -name '*.jsonl' -o -name '*.jinja' -o -name '*.css' -o -name '*.js' -o -name 'py.typed' \) | LC_ALL=C sort)
LIST := $(VENV)/sources.txt

.PHONY: demo test check-methods lint setup check-sources clean

demo: setup
	$(BIN)/maps-rag demo

test: setup lint
	$(BIN)/python -m pytest

# Every method with a real model: too long for the tests.
check-methods: setup
	$(BIN)/python benchmarks/check_methods.py

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy $(FOLDERS)

setup: $(VENV)/installed

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "maps-rag needs Python 3.11 or later, this is " + sys.version)'
	$(PYTHON) -m venv $(VENV)

# Touched only when the list of files changes, so that an edit does not reinstall.
$(LIST): $(VENV)/bin/python check-sources
	@printf '%s\n' $(SOURCES) > $@.new; cmp -s $@.new $@ || cp $@.new $@; rm -f $@.new

check-sources:

$(VENV)/installed: $(LIST) pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[local,dev]'
	@touch $@

clean:
	rm -rf $(VENV) build
