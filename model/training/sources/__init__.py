"""Readers of parallel corpora in their published layouts. read_folder() in folder.py reads a whole data folder."""
