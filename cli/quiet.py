"""Keeps the libraries underneath from talking: what a command prints is the command's alone."""

from __future__ import annotations

import logging
import os
import warnings

from maps_rag.cli.console import NotesHandler

# Read when the libraries are imported; what the user has set stays.
ENVIRONMENT = {
    "DATASETS_VERBOSITY": "error",
    "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_VERBOSITY": "error",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_LOG": "ERROR",
    "TOKENIZERS_PARALLELISM": "false",
    "TRANSFORMERS_NO_ADVISORY_WARNINGS": "1",
    "TRANSFORMERS_VERBOSITY": "error",
}
# These set their own level when they are imported.
TALKATIVE = ("dspy", "LiteLLM", "LiteLLM Proxy", "LiteLLM Router", "sentence_transformers", "transformers")


def before_imports(debug: bool = False) -> None:
    """Set what the libraries read at import, and send our own log lines to standard error, one line each."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    root = logging.getLogger()
    if not any(isinstance(handler, NotesHandler) for handler in root.handlers):
        root.addHandler(NotesHandler())
    root.setLevel(logging.INFO if debug else logging.ERROR)
    logging.getLogger("maps_rag").setLevel(logging.DEBUG if debug else logging.WARNING)
    if not debug:
        warnings.simplefilter("ignore")


def after_imports() -> None:
    """Lower the level of the libraries that raised it when they were imported."""
    for name in TALKATIVE:
        logging.getLogger(name).setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
