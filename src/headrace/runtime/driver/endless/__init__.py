"""The thread of an endless run: epochs from what the feeds bring, failures, and changes that wait for it."""
