"""Runs that last: a database of runs, benchmarks and validations, SQLite in the data folder or PostgreSQL by URL."""
