"""Live checks, and torch's own layers that they compare with."""
