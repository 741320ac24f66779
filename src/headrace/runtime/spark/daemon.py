"""Spark's Python daemon.

Loading takes a fifth less time where no garbage is looked for in between: nearly all objects stay.
"""

from __future__ import annotations

import gc


def main() -> None:
    """Load what workers need, and serve."""
    gc.disable()
    from headrace.runtime.spark.workers import serve

    serve()


if __name__ == "__main__":
    main()
