"""Replicas behind a proxy, faults around a busy app, and how many visitors there may be."""
