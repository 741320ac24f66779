"""The time of a run, and until when it alone can change an answer."""
