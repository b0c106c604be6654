"""Benchmarks, each run from the root of the repository.

    python -m benchmarks.epochs              cost of an epoch, part by part
    python -m benchmarks.epochs --epochs     epochs to a gap, method by method
    python -m benchmarks.options             epochs to a gap, by option and m
    python -m benchmarks.scaling             cost per non-zero as the data grow
    python -m benchmarks.files               reading of LIBSVM files
    python -m benchmarks.sturdiness          ordinary and nasty problems, all to be solved
    python -m benchmarks.multinomial         multinomial models, beside scikit-learn's solvers
    python -m benchmarks.paths               what a grid of C costs, in single fits
    python -m benchmarks.peers               time to an accuracy, beside other packages
    python -m benchmarks.peers.report FILE   tables and the picture of such a run

Each measures, writes its figures to a JSON file under `benchmarks/results/`, and prints what is in
that file. What is compared with each other is run in turn within one process, and the median of the
repeats is shown: a ratio of one run says more than seconds of two.
"""
