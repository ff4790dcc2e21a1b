"""What an update of training takes, by the length of its sentences."""
