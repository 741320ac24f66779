"""One epoch: what it takes of the input, the passes over it, and what is committed after it."""
