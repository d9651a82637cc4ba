"""The files that commands read and write: lines, bad lines, exports."""
