"""Files that people download, and the explorer for notebooks."""
