"""The jobs that bring files of lines into logs."""
