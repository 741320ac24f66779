"""Hypothesis profiles: `ci` is the same on every run, `soak` searches longer and at random."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)

settings.register_profile(
    "ci", max_examples=100, deadline=None, derandomize=True, database=None, suppress_health_check=_SLOW
)
settings.register_profile(
    "soak", max_examples=5000, deadline=None, database=None, print_blob=True, suppress_health_check=_SLOW
)
settings.load_profile(os.environ.get("HEADRACE_HYPOTHESIS", "ci"))
