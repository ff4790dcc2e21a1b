"""What heads do over many sentences: the statistics, what a survey found, and the labels that follow. Imports no
torch."""
