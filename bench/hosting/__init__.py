"""Servers that start, stop and watch the app: behind nginx, under faults, and to plan for visitors."""
