"""Intervals and instants: timelines, windows, frames, lateness and promises."""
