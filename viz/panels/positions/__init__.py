"""The panels on positional encoding: the table the model adds, its curves and geometry, and other codes beside it."""
