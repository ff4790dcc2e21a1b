"""What every head does over many sentences: how a survey is taken. What it finds is model.trace.survey's."""
