"""The command line: `headrace run`, `headrace explain`, `headrace nexmark`."""

from headrace.cli.app import app, main

__all__ = ["app", "main"]
