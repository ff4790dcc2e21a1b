"""Position codes compared: their schemes, the criteria they are judged by, their geometry, and relative positions."""
