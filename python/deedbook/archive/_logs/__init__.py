"""The logs of an archive: their sealed files, and the records in these files."""
