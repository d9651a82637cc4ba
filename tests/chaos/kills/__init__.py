"""What is killed, when, and the other troubles of a trial."""
