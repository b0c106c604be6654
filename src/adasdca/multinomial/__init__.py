"""Multinomial logistic regression: its risk, and Newton's method on it."""
