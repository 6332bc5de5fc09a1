"""The calls of `since`, one in a process: ``python -m benchmarks.speed.since_calls NAME``.

It is called once, to compile, then once more for each line that comes in; the CPU seconds go out.
Only names are used that were public before as they are now.
"""

from __future__ import annotations

import json
import sys
import time
from contextlib import redirect_stdout
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.speed.draws import people, rule

if TYPE_CHECKING:
    from collections.abc import Callable

    Call = Callable[[], Any]

H = 0.3
DOSES = (-0.8, -0.6, -0.4, -0.2, 0.0, 0.2, 0.4, 0.6, 0.8)


def plain(n: int, **how: Any) -> Call:
    """Return an evaluation without models."""
    import titrant as tt  # noqa: PLC0415

    log, estimator = people(n, 3, known=True), tt.SelfNormalized()
    return partial(tt.evaluate, log, rule(3), estimator=estimator, allow_untrusted=True, **how)


def doubly_robust(n: int, propensity: str | None) -> Call:
    """Return an evaluation with the two ridge models of outcomes, and a model of doses if named."""
    import titrant as tt  # noqa: PLC0415
    from titrant.outcome import ridge_pair  # noqa: PLC0415

    how: dict[str, Any] = {"estimator": tt.DoublyRobust(outcome=tt.Stack(ridge_pair()))}
    if propensity:
        how["propensity"] = getattr(tt, propensity)()
    log = people(n, 3, known=propensity is None)
    return partial(tt.evaluate, log, rule(3), allow_untrusted=True, **how)


def compared(n: int) -> Call:
    """Return a comparison of five policies."""
    import titrant as tt  # noqa: PLC0415

    log, rules = people(n, 3, known=True), {"rule": rule(3), "status quo": tt.StatusQuo()}
    policies = rules | {str(dose): tt.Constant(dose) for dose in (-0.3, 0.0, 0.3)}
    how: dict[str, Any] = {"estimator": tt.SelfNormalized(), "allow_untrusted": True}
    return partial(tt.compare, log, policies, **how)


def drawn(n: int) -> Call:
    """Return a curve of nine doses."""
    import titrant as tt  # noqa: PLC0415

    log = people(n, 3, known=True)
    return partial(tt.curve, log, tt.Constant, DOSES, estimator=tt.SelfNormalized())


def path(n: int) -> Call:
    """Return the path of as many bandwidths as it has unless told."""
    import titrant as tt  # noqa: PLC0415

    log = people(n, 3, known=True)
    return partial(tt.bandwidth_path, log, rule(3), estimator=tt.SelfNormalized())


def searched(n: int) -> Call:
    """Return a search of 32 restarts, without an honest value."""
    import titrant as tt  # noqa: PLC0415

    log, how = people(n, 10, known=True), tt.CPO(restarts=32)
    return lambda: tt.PolicyLearner(policy=tt.LinearClass(), procedure=how, honest=False).fit(log)


def constant(n: int) -> Call:
    """Return the exact search of one dose for all."""
    import titrant as tt  # noqa: PLC0415

    log, how = people(n, 3, known=True), {"bandwidth": H, "allow_untrusted": True}
    return partial(tt.best_constant, log, estimator=tt.SelfNormalized(), **how)


def drawn_again(n: int) -> Call:
    """Return an evaluation whose interval is drawn."""
    import titrant as tt  # noqa: PLC0415

    return plain(n, bandwidth=H, interval=tt.PoissonBootstrap())


def plugged_in(n: int) -> Call:
    """Return an evaluation whose bandwidth is the paper's."""
    import titrant as tt  # noqa: PLC0415

    return plain(n, bandwidth=tt.PlugIn())


def scanned(rows: int) -> Call:
    """Return an evaluation over files without models."""
    import titrant as tt  # noqa: PLC0415
    from benchmarks.scale.generate import COLUMNS, CONTEXTS, generate  # noqa: PLC0415
    from benchmarks.speed.files import CACHE  # noqa: PLC0415

    files = [str(path) for path in sorted(generate(CACHE, rows).resolve().glob("*.parquet"))]
    log, policy = tt.scan_parquet(files, COLUMNS), tt.Linear(np.linspace(-0.2, 0.3, CONTEXTS), 0.2)
    how: dict[str, Any] = {"estimator": tt.SelfNormalized(), "allow_untrusted": True}
    return partial(tt.evaluate, log, policy, **how)


SIZES = (10**4, 10**5, 10**6)
CALLS: dict[str, Callable[[], Call]] = {
    **{f"evaluate, bandwidth chosen, n = {n:,}": partial(plain, n) for n in SIZES},
    **{f"evaluate, bandwidth given, n = {n:,}": partial(plain, n, bandwidth=H) for n in SIZES},
    **{
        f"evaluate, doubly robust by two ridge models, {told}, n = 100,000": partial(
            doubly_robust, 10**5, propensity
        )
        for told, propensity in (
            ("propensity known", None),
            ("`GaussianMixture`", "GaussianMixture"),
            ("`LinearGaussian`", "LinearGaussian"),
        )
    },
    "compare, five policies, n = 100,000": partial(compared, 10**5),
    "curve, nine doses, n = 100,000": partial(drawn, 10**5),
    "bandwidth_path, 27 bandwidths, n = 1,000,000": partial(path, 10**6),
    "CPO, 32 restarts, ten contexts, n = 400": partial(searched, 400),
    "CPO, 32 restarts, ten contexts, n = 10,000": partial(searched, 10**4),
    "best_constant, the exact optimum, n = 100,000": partial(constant, 10**5),
    "evaluate, bootstrap of 1,000 draws, n = 10,000": partial(drawn_again, 10**4),
    "evaluate, plug-in bandwidth, n = 10,000": partial(plugged_in, 10**4),
    "evaluate over Parquet, 1,000,000 rows × 12": partial(scanned, 10**6),
}
"""All without models of outcomes or doses, unless told: models by default have changed."""


def main(name: str) -> None:
    """Answer every line with the CPU seconds of a call; or say why there is none."""
    answers = sys.stdout
    with redirect_stdout(sys.stderr):  # what a call prints is no answer
        try:
            call = CALLS[name]()
            call()
        except Exception as reason:  # noqa: BLE001  (whatever these sources do not know)
            told = {"cannot": f"{type(reason).__name__}: {reason}"}
            print(json.dumps(told), file=answers, flush=True)
            return
        print(json.dumps({"cannot": None}), file=answers, flush=True)
        for _ in sys.stdin:
            begun = time.process_time()
            call()
            print(time.process_time() - begun, file=answers, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
