"""Benchmarks, each run from the root of the repository; README.md lists the commands.

Each measures, writes its figures to a JSON file under `benchmarks/results/`, and prints what is in
that file. What is compared with each other is run in turn within one process, and the median of the
repeats is shown: a ratio of one run says more than seconds of two.
"""
