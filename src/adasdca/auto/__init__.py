"""`auto`: the steps of a solve priced, and the cheapest chosen."""
