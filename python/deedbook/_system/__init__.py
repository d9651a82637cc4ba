"""The operating system as the Python layer uses it: files, locks, processes, threads."""
