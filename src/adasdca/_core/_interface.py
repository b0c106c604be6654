"""The interface of the core that these sources are for; written by `make stubs`."""

DIGEST = "cc6a0871"
