"""Readers of corpora: sentence pairs, from the layouts in which they are published."""
