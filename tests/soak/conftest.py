"""The soak takes long: it is left out unless HEADRACE_SOAK=1 asks for it, as `make soak` does."""

from __future__ import annotations

import os

collect_ignore_glob = [] if os.environ.get("HEADRACE_SOAK") == "1" else ["test_*.py"]
