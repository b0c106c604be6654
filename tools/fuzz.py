"""Fuzz what reads files and numbers: fuzz.py --time SECONDS [--only NAME ...] [-o FILE].

The targets are tests/fuzz/NAME.cpp, compiled with clang's libFuzzer and its sanitizers, and started
from the inputs in tests/fuzz/seeds/NAME. What they discover is kept in build/fuzz, and later runs
go on from there. tools/fuzz_files.py, the formats that Python reads, takes its share of the time.
An input that breaks a target stays in build/fuzz, and the exit status is then 1.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "tests" / "fuzz"
BUILD = ROOT / "build" / "fuzz"
COMPILERS = ("clang++", *(f"clang++-{version}" for version in range(30, 13, -1)))
FLAGS = [
    "-std=c++20", "-O1", "-g", "-Wno-pass-failed",
    "-fopenmp-simd", "-fno-math-errno", "-fno-trapping-math",
    "-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=undefined",
]  # fmt: skip
FILES = ROOT / "tools" / "fuzz_files.py"


def compiler() -> str:
    """Return the newest clang that is found."""
    for name in COMPILERS:
        if shutil.which(name):
            return name
    sys.exit("No clang found, whose libFuzzer is needed (Debian: clang libclang-rt-14-dev).")


def fuzz(name: str, seconds: int) -> dict[str, Any]:
    """Compile and run one target; return what the run was."""
    program, corpus = BUILD / name, BUILD / "corpus" / name
    corpus.mkdir(parents=True, exist_ok=True)
    source = str(SOURCES / f"{name}.cpp")
    include = [f"-I{ROOT / 'core'}"]
    subprocess.run([compiler(), *FLAGS, *include, source, "-o", str(program)], check=True)
    seeds = SOURCES / "seeds" / name
    # Any input takes far less than these limits: memory in MB, seconds.
    limits = ["-max_len=6000", "-timeout=20", "-rss_limit_mb=2048"]
    run = subprocess.run(
        [str(program), f"-max_total_time={seconds}", *limits, "-print_final_stats=1",
         f"-artifact_prefix={BUILD / name}-", str(corpus), str(seeds)],
        stderr=subprocess.PIPE, text=True, errors="replace", check=False,
    )  # fmt: skip
    done = re.search(r"number_of_executed_units: (\d+)", run.stderr)
    covered = re.findall(r"cov: (\d+)", run.stderr)
    if run.returncode != 0:
        print(run.stderr[-8000:])
    return {
        "target": name,
        "seconds": seconds,
        "inputs": int(done[1]) if done else 0,
        "edges": int(covered[-1]) if covered else 0,
        "failed": run.returncode != 0,
    }


def files_hold(seconds: int) -> bool:
    """Damage files of the formats that Python reads; return whether all were refused by us."""
    command = [sys.executable, str(FILES), str(seconds)]
    return subprocess.run(command, check=False).returncode == 0


def main() -> None:
    """Run the targets one after another, and say what was found."""
    names = sorted(path.stem for path in SOURCES.glob("*.cpp"))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--time", type=int, default=120, help="seconds for all together")
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    parser.add_argument("-o", "--output", type=Path, help="write the figures here, as JSON")
    options = parser.parse_args()
    files = FILES.exists() and options.only == names
    share = max(1, options.time // (len(options.only) + files))
    found = []
    for name in options.only:
        found.append(fuzz(name, share))
        print("{target}: {inputs} inputs, {edges} edges, failed: {failed}".format(**found[-1]))
    if files:
        found.append({"target": "files", "seconds": share, "failed": not files_hold(share)})
    failures = sum(entry["failed"] for entry in found)
    inputs = sum(entry.get("inputs", 0) for entry in found)
    print(f"{inputs} inputs in {sum(entry['seconds'] for entry in found)} s, {failures} failures")
    if options.output:
        options.output.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
