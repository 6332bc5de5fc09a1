"""A policy search over files in a process of its own, to be killed: LOG STATE RESULT [GATES].

With gates it stops in the middle of its search and waits.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import titrant as tt
from faults.gates import Gates
from faults.logs import KNOWN

ROUNDS = 3  # of the search whose state is on disk when it comes to the gate


def main(log, state, result, gates=None):
    passes = kept = 0

    def count(done, total):
        nonlocal passes, kept
        if done == total:
            passes += 1
            kept += any(Path(state).glob("search-*.npz"))
            if gates is not None and kept == ROUNDS:
                Gates(gates).come_to("middle")

    learner = tt.PolicyLearner(
        policy=tt.Linear(),
        procedure=tt.CPO(restarts=3),
        honest=False,
        executor=tt.Engine(progress=count),
        checkpoint=state,
    ).fit(tt.scan_parquet(log, KNOWN))
    found = {**learner.learned_.to_dict(), "passes": passes}
    Path(result).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
