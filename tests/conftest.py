"""Shared by all tests: an offline environment and a scripted language model."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# How fast a machine is, is no property of the code: no test fails for its time.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
