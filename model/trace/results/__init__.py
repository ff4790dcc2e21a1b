"""What answers can do besides being read: files, tables, cells; and other libraries' files. Imports no torch."""
