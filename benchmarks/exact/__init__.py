"""An oracle for certificates: optima to sixty digits, and random problems to ask it about."""
