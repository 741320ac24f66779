"""The epochs of a run: what the next one takes, what its commit says, and when it is tried again."""
