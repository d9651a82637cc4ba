"""The targets and times of kills, and the other faults of a trial."""
