"""Recipes of the shipped checkpoints; see the README. Not part of the package."""
