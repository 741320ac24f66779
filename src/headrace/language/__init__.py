"""From text to a bound plan: dialect, statements, binder, printer."""
