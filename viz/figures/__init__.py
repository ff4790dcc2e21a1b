"""Plotly figures for notebooks and panels, and matplotlib figures for documents."""
