"""What trains: corpora, batches, loss, state, validation."""
