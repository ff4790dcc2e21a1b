"""The time of a training update by sentence length, measured and stored in measured.json."""
