"""The loop that runs a schedule on a backend until a rule says stop."""
