"""The record of what counts: one per epoch, and what must be kept to go on from it."""
