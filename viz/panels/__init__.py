"""The lab's panels."""
