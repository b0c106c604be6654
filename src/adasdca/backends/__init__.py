"""Where the rows live: the protocol between the loop and the rows, and those of this process."""
