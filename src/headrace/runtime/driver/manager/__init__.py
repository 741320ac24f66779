"""The state of a run is kept within a limit by the sizes of its windows (thesis, chapter 23)."""
