"""Position codes compared: their schemes and criteria, their geometry, and relative positions."""
