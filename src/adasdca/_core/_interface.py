"""The interface of the core that these sources are for; written by `make stubs`."""

DIGEST = "e0a5510e"
