"""Everyday sentence pairs, composed from a lexicon of this project: German or French with English."""
