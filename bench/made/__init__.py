"""What is measured: texts, models and traces of any size, and the libraries compared with ours."""
