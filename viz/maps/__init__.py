"""Which map of a trace to show, how its tokens are labelled, and how branches of a decoding compare."""
