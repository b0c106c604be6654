"""What a duality gap proves: certificates, error bounds, and the theory of the paper."""
