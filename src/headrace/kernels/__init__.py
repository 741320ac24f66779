"""Pure functions from arrays to arrays; no state, no clock, no I/O."""
