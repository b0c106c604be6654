"""Break the package in one place after the other, and see whether its tests notice.

    python tools/mutations.py [--only TEXT] [--core] [--list]

A mutation is a file, a piece of it, what takes its place, and the tests that are to fail. Each is
put into the sources, which an editable install reads, its tests are run, and the file is put back.
What survives is printed, and makes the exit status 1 unless a reason is given for it here.
Those of the core, each of which is compiled for minutes, are tried with `--core` alone.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from adasdca_reproduce.machine import commit

ROOT = Path(__file__).resolve().parents[1]
#: Seconds after which tests are taken to be without end, which some mutations make them.
ENDLESS = 3600


@dataclass(frozen=True)
class Mutation:
    """What is broken, how, and who should notice."""

    file: str  #: Below `src/`, or `core/…`.
    #: A piece that occurs once, and what takes its place.
    old: str
    new: str
    tests: str  #: Files of tests, without `test_`, or FILE::TEST.
    survives: str = ""  #: Why it may survive; empty if it must not.


EPOCHS, SCHEDULES = "adasdca/backends/epochs.py", "adasdca/ascent/schedules.py"
SAMPLING, THEORY = "adasdca/ascent/sampling.py", "adasdca/duality/theory.py"
CERTIFICATE, VERDICTS = "adasdca/duality/certificate.py", "adasdca_reproduce/verdicts.py"
CLAIMS, RESULTS = "adasdca_reproduce/claims.py", "adasdca_reproduce/results.py"
RATES, INSIDE = "adasdca_reproduce/rates.py", "adasdca_reproduce/inside.py"
WATCHING, LOOP = "adasdca_reproduce/watching.py", "adasdca/engine/loop.py"
TABLES, EXPERIMENTS = "adasdca_reproduce/tables.py", "adasdca_reproduce/experiments.py"

MUTATIONS = (
    # what epochs do
    Mutation(EPOCHS, "float(pace[probability > 0].min())", "float(0.5 * pace.min())", "wiring"),
    Mutation(EPOCHS, "draw_tree(weights, m, count", "draw_tree(weights, 2.0, count", "wiring"),
    Mutation(EPOCHS, "else float(plan.m)", "else float(plan.m) ** 2", "wiring"),
    Mutation(EPOCHS, "round(plan.epoch * self", "round(self", "wiring"),
    Mutation(
        EPOCHS,
        "            return figures.adaptive\n",
        "            size = figures.weight * (figures.curvature + figures.gamma)\n"
        "            return figures.adaptive / np.sqrt(size)\n",
        "wiring",
    ),
    Mutation(EPOCHS, "pace = probability * gamma", "pace = gamma", "wiring"),
    # what schedules plan
    Mutation(SCHEDULES, 'Draws("importance", key)', 'Draws("uniform", key)', "wiring"),
    Mutation(SCHEDULES, "return AdaptiveSteps(self.rule, key)",
             'return AdaptiveSteps("optimal" if self.rule == "relaxed" else "relaxed", key)',
             "wiring"),
    Mutation(SCHEDULES, "AveragedDraws(self.sampling, key,", 'AveragedDraws("uniform", key,',
             "wiring"),
    Mutation(SCHEDULES, 'probabilities, idle = "importance", False',
             'probabilities, idle = "uniform", False', "wiring"),
    Mutation(SCHEDULES, 'sampler == "tree"', 'sampler == "plan"', "wiring"),
    # sampling rules
    Mutation(SAMPLING, "curvature + floor, 0.0", "curvature, 0.0", "wiring"),
    Mutation(SAMPLING, "            survey.intercept,\n", "            0.0,\n", "step_residue"),
    Mutation(SAMPLING, "            self._weight,\n", "            None,\n", "step_residue"),
    Mutation(SAMPLING, "(distribution < 0).any()", "False", "bad_input"),
    Mutation(SAMPLING, "survey.adaptive / sums[0] + steps / sums[1]", "steps / sums[1]",
             "step_residue"),
    Mutation(SAMPLING, "if min(sums) == 0.0:", "if max(sums) == 0.0:", "step_residue"),
    # theory
    Mutation(THEORY, "kappa[live] ** 2 * (v + stiffness)[live]", "kappa[live] ** 2 * v[live]",
             "theory"),
    Mutation(THEORY, "1.0 / np.sum(1.0 + v / stiffness)", "1.0 / np.sum(v / stiffness)", "theory"),
    Mutation(THEORY, "s = np.abs(kappa) * np.sqrt(v + stiffness)", "s = np.abs(kappa)", "theory"),
    Mutation(THEORY, "np.cumprod(1.0 - rates[:-1])]", "np.cumprod(1.0 - rates[1:])]", "theory"),
    Mutation(THEORY, "(rest[k] ** 2 + k * excess)", "(rest[k] ** 2)", "theory"),
    Mutation(THEORY, "(1.0 - theta_star) ** steps", "(1.0 - theta_star) ** (steps + 1)", "theory"),
    Mutation(THEORY, "nnz + n * math.log2(n)", "nnz + n", "theory"),
    # the certificate
    Mutation(CERTIFICATE, "math.sqrt(2.0 * gap / strength)", "math.sqrt(gap / strength)",
             "certificate certificates_exactly"),
    Mutation(CERTIFICATE, "primal - gap - blur, -math.inf", "primal - gap + blur, -math.inf",
             "certificates_exactly certificate"),
    Mutation("adasdca/backends/backend.py", "primal, found.gap, found.rounding,",
             "primal, found.gap - found.rounding, found.rounding,", "certificates_exactly"),
    Mutation("adasdca/backends/backend.py", "problem, links\n", "problem, -12\n",
             "backends::test_sums_are_as_near_as_they_say"),
    Mutation("adasdca/backends/passes.py", "math.copysign(self._lost * sums[6], sums[5])", "0.0",
             "backends::test_the_evidence_knows_what_rounding_can_do"),
    Mutation("adasdca/newton/linear.py", "place_exactly(v, b, rest)",
             "place_exactly(v, b, (0 * v, 0.0))",
             "oracle::test_solves_go_on_to_what_can_be_certified"),
    Mutation("adasdca/auto/second_order.py",
             "self.exhausted or (not self.cut and survey.gap >= self._gap)", "False",
             "oracle::test_solves_go_on_to_what_can_be_certified"),
    Mutation(CERTIFICATE, "        return gap / primal\n", "        return gap / (1 + primal)\n",
             "certificate"),
    Mutation(CERTIFICATE, "if up > down else", "if up < down else", "certificate"),
    Mutation("adasdca/duality/error_bounds.py", " + 0.5 * solution.intercept_error", "",
             "multinomial"),
    Mutation(LOOP, "not self._trail or arrived or", "not self._trail or", "stopping"),
    Mutation(LOOP, "except CertificateError:", "except ZeroDivisionError:", "stopping"),
    # what a stop, a file and odd input may do
    Mutation(LOOP, "        self._trail.append((record, self._label))\n",
             "        self._trail.append(None)\n        self._trail[-1] = record, self._label\n",
             "interruption"),
    Mutation(LOOP, "        except KeyboardInterrupt:\n            stop",
             "        except ZeroDivisionError:\n            stop", "interruption"),
    Mutation("adasdca/multinomial/solver.py", "heeded(max(stop.seconds_left(), 0.0) + FIRST)",
             "heeded(math.inf)", "interruption"),
    Mutation(LOOP, "                return Status.INTERRUPTED\n",
             "                return Status.STALLED\n", "plugins"),
    Mutation("adasdca/engine/interruption.py", "    around = _around()\n    if around is",
             "    around = None\n    if around is", "interruption"),
    Mutation("adasdca/estimators/_solves.py", "        if monitor.stopped:\n",
             "        if False:\n", "interruption"),
    Mutation("adasdca/estimators/_solves.py", "else began + model.max_time",
             "else time.perf_counter() + model.max_time", "interruption"),
    Mutation("adasdca/estimators/_solves.py", "        if around.wished:\n",
             "        if False:\n", "interruption"),
    Mutation("adasdca/estimators/_solves.py", "2.0 * prepared > left + GRACE", "False",
             "interruption"),
    Mutation("adasdca/backends/cpu.py", "self._finer.near(w, b, near, found[best])",
             "None", "lattice"),
    Mutation("adasdca/duality/lattice.py", "    basis, made = _reduced(np.hstack(",
             "    basis, made = (lambda v: (v, np.eye(len(v))))(np.hstack(", "lattice"),
    Mutation("adasdca/paths.py", "                around.check()\n", "", "interruption"),
    Mutation("adasdca/multinomial/solver.py", "max_epochs, max_time, callback, around",
             "max_epochs, None, callback, around", "multinomial"),
    Mutation("adasdca/newton/equations.py", "        if damping >= 1.0 or ", "        if True or ",
             "multinomial"),
    Mutation("adasdca/newton/multipliers.py",
             "if at.stalled and sharpest and at.share < FINEST:", "if False:",
             "certificates_exactly"),
    Mutation("adasdca/problem/problem.py", "constant = float(dtype.type(value))",
             "constant = float(value)", "intercept_scaling"),
    Mutation("adasdca/storage/writing.py", "    if _is_special(path):\n        with open",
             "    if True:\n        with open", "atomic"),
    Mutation("adasdca/storage/damage.py", "    if needed > allowance(size):\n", "    if False:\n",
             "fuzz"),
    Mutation("adasdca/storage/damage.py", "if disk or not (panic or isinstance(error, Exception))",
             "if True", "fuzz"),
    Mutation("adasdca/datasets/_download.py", "if most is not None and done > most:", "if False:",
             "datasets_fetch"),
    Mutation("adasdca/problem/data.py",
             "if isinstance(x, np.ma.MaskedArray) and np.ma.is_masked(x):", "if False:",
             "odd_input"),
    Mutation("adasdca/problem/data.py", "    except OverflowError:\n        return False",
             "    except ZeroDivisionError:\n        return False", "odd_input"),
    Mutation("adasdca/problem/data.py", " and flags.aligned:", ":", "input_forms"),
    Mutation("adasdca/solver.py", "n_threads, 1, MOST_THREADS)", "n_threads, 1)", "odd_input"),
    Mutation(CERTIFICATE, "if math.isfinite(share) else", "if True else", "odd_input"),
    Mutation("adasdca/ascent/survey.py", "view.flags.writeable = False", "pass", "odd_input"),
    Mutation("adasdca/multinomial/solver.py", "np.errstate(all=\"ignore\"), one_thread()",
             "one_thread()", "odd_input"),
    Mutation("adasdca/models/_model.py", "if len(set(labels.ravel().tolist())) != labels.size:",
             "if False:", "models"),
    Mutation("adasdca/models/_model.py",
             "if not (np.isfinite(self.coef).all() and np.isfinite(self.intercept).all()):",
             "if False:", "models"),
    # the core: a gap that loses its digits in a difference, and a thread that cannot be started
    Mutation("core/duality/certificate.hpp", "rows.share[k] = loss.excess(z, b, t);",
             "rows.share[k] = loss.value(z, t) + loss.conjugate(b, t) + z * b;", "far_targets"),
    Mutation("core/system/parallel.hpp", "} catch (const std::system_error&) {  // no thread left",
             "} catch (const std::domain_error&) {", "threads"),
    # float32 data moved about 0 and back, in their own digits: another problem is certified
    Mutation("adasdca/problem/data.py",
             "        return values if values.dtype.isnative else",
             "        values = (values - values.mean()) + values.mean()\n"
             "        return values if values.dtype.isnative else", "far_targets"),
    # verdicts
    Mutation(VERDICTS, "mine.high < low or (not strict", "mine.high <= low or (not strict",
             "reproduce_claims"),
    Mutation(VERDICTS, "(high < mine.low or", "(high <= mine.low or", "reproduce_claims"),
    Mutation(VERDICTS, "for n in others.values()) for end", "for n in [*others.values()][:1]) "
             "for end", "reproduce_claims"),
    Mutation(VERDICTS, "best.least <= mine.greatest and", "best.least > mine.greatest and",
             "reproduce_claims"),
    Mutation(VERDICTS, "max(2.0, 0.1 * max(", "max(2.0, 0.5 * max(", "reproduce_claims"),
    Mutation(VERDICTS, "and not (self.close or self.tied)", "and not self.close",
             "reproduce_claims"),
    Mutation(VERDICTS, "mine.high == best.high", "mine.low >= best.high", "reproduce_claims"),
    Mutation(CLAIMS, 'times if self.kind == "ratio" else slow - fast', "times",
             "reproduce_claims"),
    Mutation(CLAIMS, "grows <= allowed + self.slack", "grows <= allowed + 2 * self.slack",
             "reproduce_claims"),
    Mutation(CLAIMS, "best_of(needs[name] for name in self.claimants)",
             "needs[self.claimants[0]]", "reproduce_claims"),
    Mutation(CLAIMS, "results.needs(self.rivals_of or self.experiment,",
             "results.needs(self.experiment,", "reproduce_claims"),
    Mutation(RESULTS, "seconds - spent * share", "seconds - spent", "reproduce_claims"),
    Mutation(RESULTS, ' or method.startswith("option II,")', "", "reproduce_claims"),
    Mutation(RESULTS, '"quartz", "option II", "adasdca"', '"quartz", "option I", "adasdca"',
             "reproduce_claims"),
    Mutation(RESULTS, "statistics.median(lows)", "min(lows)", "reproduce_claims"),
    Mutation(VERDICTS, "0.0 if mine.reached else math.inf", "math.inf if mine.reached else 0.0",
             "reproduce_claims"),
    # runs watched from inside
    Mutation(RATES, "(thetas * gaps).sum(axis=0) / gaps.sum(axis=0)", "thetas.mean(axis=0)",
             "reproduce_theory"),
    Mutation(RATES, 'if method == "iprox-sdca":', 'if method != "iprox-sdca":',
             "reproduce_theory"),
    Mutation(INSIDE, "seen.bound * (1 + 1e-9)", "seen.bound * 2", "reproduce_theory"),
    Mutation(INSIDE, "ratio >= 1 - 1e-9", "ratio >= 0.5", "reproduce_theory"),
    Mutation(INSIDE, "share <= SMALL", "share <= 2 * SMALL", "reproduce_theory"),
    Mutation(INSIDE, "share > 0.5", "share >= 0.5", "reproduce_theory"),
    Mutation(INSIDE, "left < moved", "left <= moved", "reproduce_theory"),
    Mutation(INSIDE, "gap > PRECISE * primal", "gap > 0", "reproduce_theory"),
    Mutation(WATCHING, 'getattr(method, "option", "") == "I"',
             'getattr(method, "option", "") == "II"', "reproduce_theory"),
    Mutation(WATCHING, "method.m ** -times", "method.m ** times", "reproduce_theory"),
    Mutation(WATCHING, "_core.subkey(seed, epoch)", "_core.subkey(seed, epoch + 1)",
             "reproduce_theory"),
    # what is run, and what the paper says
    Mutation("adasdca_reproduce/paper.py", '_FIXED = ("sdca", "iprox-sdca")', '_FIXED = ("sdca",)',
             "reproduce_paper"),
    Mutation("adasdca_reproduce/runner.py", '"lam": 1.0 / n', '"lam": 10.0 / n',
             "reproduce_paper"),
    Mutation("adasdca_reproduce/runner.py", '"loss": get_loss(task.loss)',
             '"loss": get_loss(task.loss, gamma=0.5)', "reproduce_paper"),
    Mutation(EXPERIMENTS, '"option II": AdaSDCAPlus(option="II", m=2.0)',
             '"option II": AdaSDCAPlus(option="I", m=2.0)', "reproduce_paper"),
    Mutation(EXPERIMENTS, 'AdaSDCA(rule="relaxed")', 'AdaSDCA(rule="optimal")', "reproduce_paper"),
    Mutation(TABLES, "(300, 49_749, 3.9, 1)", "(300, 49_749, 3.8, 1)", "reproduce_paper"),
    Mutation(TABLES, '"iprox-sdca": "O(nnz + n log n)"', '"iprox-sdca": "O(nnz)"',
             "reproduce_paper"),
    Mutation(TABLES, 'if r["method"] == "option I":\n            spent',
             'if r["method"] == "sdca":\n            spent', "reproduce_claims"),
)  # fmt: skip


def path_of(mutation: Mutation) -> Path:
    """Return the file that is broken."""
    return (ROOT if in_core(mutation) else ROOT / "src") / mutation.file


def in_core(mutation: Mutation) -> bool:
    """Whether the core is to be compiled."""
    return mutation.file.startswith("core/")


def compile_core() -> None:
    """Compile the core as it is."""
    subprocess.run(["make", "build"], cwd=ROOT, stdout=subprocess.DEVNULL, check=True)


def broken(mutation: Mutation) -> str:
    """Return the text of the file with the mutation in it."""
    text = path_of(mutation).read_text("utf-8")
    if text.count(mutation.old) != 1:
        raise ValueError(f"{mutation.file}: {mutation.old!r} occurs {text.count(mutation.old)} ×")
    return text.replace(mutation.old, mutation.new)


def passes(tests: str) -> bool:
    """Whether the tests pass with the sources as they are."""
    pairs = [name.partition("::") for name in tests.split()]
    files = [str(ROOT / "tests" / f"test_{name}.py") + sign + one for name, sign, one in pairs]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *files]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False, timeout=ENDLESS)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def survives(mutation: Mutation) -> bool:
    """Whether the tests pass with the mutation in place."""
    path, text = path_of(mutation), path_of(mutation).read_text("utf-8")
    try:
        path.write_text(broken(mutation), "utf-8")
        if in_core(mutation):
            compile_core()
        return passes(mutation.tests)
    finally:
        path.write_text(text, "utf-8")
        if in_core(mutation):
            compile_core()


def main() -> None:
    """Try all mutations, or those whose file or text has the words given."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="words of the file or of the text")
    parser.add_argument("--core", action="store_true", help="those of the core, and no others")
    parser.add_argument("--list", action="store_true", help="run nothing")
    args = parser.parse_args()
    chosen = [m for m in MUTATIONS if args.only in m.file or args.only in m.old]
    chosen = [m for m in chosen if in_core(m) == args.core]
    left, noticed = 0, 0
    if not args.list:  # tests that fail anyway would kill everything
        for tests in sorted({m.tests for m in chosen}):
            if not passes(tests):
                sys.exit(f"the tests of {tests} fail without a mutation; mend them first")
    for mutation in chosen:
        words = f"{mutation.file}: {mutation.old.strip()} -> {mutation.new.strip()}"
        if args.list:
            print(words)
            continue
        alive = survives(mutation)
        noticed += not alive
        print(f"{'SURVIVES' if alive else 'killed':8} {' '.join(words.split())}", flush=True)
        if alive and mutation.survives:
            print(f"         because: {mutation.survives}")
        left += alive and not mutation.survives
    if not args.list:
        print(f"{noticed} of {len(chosen)} mutations are noticed by the tests; commit {commit()}")
    if left:
        sys.exit(f"{left} of {len(chosen)} mutations survive without a reason")


if __name__ == "__main__":
    main()
