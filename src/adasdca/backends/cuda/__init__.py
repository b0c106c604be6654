"""Rows on a CUDA device: the losses, products, terms and certificates in array operations."""
