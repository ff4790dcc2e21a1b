"""What many passes over one sentence need to be run together, and no more of them than what differs."""
