"""The printing side of the shell: colours, tables, progress, payloads."""
