"""Training: corpora and their mixture, batches, loss, the state of a run, validation; toy/ trains in the page."""
