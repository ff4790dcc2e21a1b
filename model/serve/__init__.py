"""Serve many requests on few cores: batches, limits, caches, devices and processes."""
