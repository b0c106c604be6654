"""The interface of the core that these sources are for; written by `make stubs`."""

DIGEST = "29c0f190"
