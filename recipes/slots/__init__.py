"""Sentences with slots for names, towns, numbers, dates and times, and what fills them in each language."""
