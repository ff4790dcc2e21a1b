"""When to distrust a translation. Imports no torch."""
