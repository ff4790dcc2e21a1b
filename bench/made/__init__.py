"""What is measured: texts, models and traces of any size, and what people would use instead."""
