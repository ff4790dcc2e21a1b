"""Everyday sentence pairs, composed in German and English at once from a lexicon of this project."""
