"""Coordinate ascent: what a survey shows, which rows come next, the methods of the paper."""
