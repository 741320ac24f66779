"""The folder that holds a run: segments, files that are whole or absent, and points to crash at in tests."""
