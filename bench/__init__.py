"""Benchmarks: speed, compared with other libraries, and the app under load. Not part of the package."""
