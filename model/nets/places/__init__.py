"""The named places of a pass, and what happens there."""
