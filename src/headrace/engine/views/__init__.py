"""An answer as people read it: tables, frames, charts, changes as they come."""
