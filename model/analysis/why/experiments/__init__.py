"""What is measured by running the model again: heads switched off, the fewest that suffice, patches, cut edges."""
