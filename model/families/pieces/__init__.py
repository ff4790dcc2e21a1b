"""From the files of other people's tokenizers to pieces by id."""
