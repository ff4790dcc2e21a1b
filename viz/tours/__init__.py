"""Guided tours: JSON files with texts and claims, and the code that measures each claim on the served model."""
