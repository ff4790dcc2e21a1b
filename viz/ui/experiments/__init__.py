"""Experiments on the model that other tabs than "Why" offer."""
