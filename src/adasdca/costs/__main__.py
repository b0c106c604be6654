"""`python -m adasdca.costs [-o FILE]`: the rates of this machine beside the published ones."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict

from adasdca.costs import Rates, calibrate
from adasdca.costs.rates import VARIABLE


def main(arguments: list[str] | None = None) -> None:
    """Measure, print a table, and write the file that was asked for."""
    parser = argparse.ArgumentParser(prog="python -m adasdca.costs", description=__doc__)
    parser.add_argument("-o", "--output", metavar="FILE", help="write the rates to this JSON file")
    output = parser.parse_args(arguments).output
    measured, published = calibrate(), asdict(Rates())
    lines = [f"{'nanoseconds':<16}{'measured':>12}{'published':>12}{'ratio':>8}"]
    for name, rate in asdict(measured).items():
        usual = published[name]
        lines.append(f"{name:<16}{rate:>12.4g}{usual:>12.4g}{rate / usual:>8.2f}")
    if output is not None:
        try:
            measured.save(output)
        except OSError as error:
            parser.error(f"{output!r} cannot be written ({error}); choose another file.")
        lines.append(f"Written; {VARIABLE}={output} makes `solve` use them.")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
