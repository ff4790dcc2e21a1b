"""Arrays in, arrays out: which map a person looks at, and how tokens are shown."""
