"""The command line: `headrace run`, `explain`, `nexmark` and `store`."""

from headrace.cli.app import app, main

__all__ = ["app", "main"]
