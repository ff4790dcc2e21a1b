"""Word alignments: links, their files, two directions put together, scores. Imports no torch."""
