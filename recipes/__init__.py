"""How the shipped checkpoints are made: a README says how. Not part of the package."""
