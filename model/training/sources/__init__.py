"""Where sentence pairs come from: readers of corpora, and other names in real pairs."""
