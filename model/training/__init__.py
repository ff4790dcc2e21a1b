"""Training: corpora and their mixture, batches, loss, the state of a run; toy/ trains in the page."""
