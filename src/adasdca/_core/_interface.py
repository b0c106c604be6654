"""The interface of the core that these sources are for; written by `make stubs`."""

DIGEST = "eac46d2c"
