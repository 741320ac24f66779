"""The facts of a run: status, progress, counts, and the streams that describe it."""
