"""A search that is stopped anywhere goes on to the same end, bit for bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from titrant.errors import DataError, ExecutionError
from titrant.optimize import LBFGS, Box, Checkpoint, Objective

STARTS = np.random.default_rng(0).uniform(-2, 2, size=(5, 3))


BOX = Box(lower=np.full(3, -9.0), upper=np.full(3, 0.9))


class Stopped(Exception):
    pass


class Valley(Objective):
    """Rosenbrock's valley in three dimensions, which ends the process after some calls."""

    def __init__(self, calls=10**9):
        self.calls = calls

    def __call__(self, params):
        if self.calls == 0:
            raise Stopped
        self.calls -= 1
        x, y = params[:, :-1], params[:, 1:]
        steep, flat = y - x**2, 1 - x
        gradient = np.zeros_like(params)
        gradient[:, :-1] = -400 * x * steep - 2 * flat
        gradient[:, 1:] += 200 * steep
        return np.sum(100 * steep**2 + flat**2, axis=1), gradient


def same_bits(a, b):
    return (
        a.params.tobytes() == b.params.tobytes()
        and a.ends.tobytes() == b.ends.tobytes()
        and a.values.tobytes() == b.values.tobytes()
        and (a.status, a.evaluations) == (b.status, b.evaluations)
    )


@pytest.mark.parametrize("constraint", [BOX, None], ids=["box", "free"])
@pytest.mark.parametrize("calls", [1, 2, 17])
def test_a_stopped_search_goes_on(tmp_path, calls, constraint):
    search = LBFGS() if constraint is None else LBFGS(constraint=constraint)
    whole = search.minimize(Valley(), STARTS)
    kept = replace(search, checkpoint=Checkpoint(str(tmp_path)))
    with pytest.raises(Stopped):
        kept.minimize(Valley(calls), STARTS)
    with pytest.raises(Stopped):
        kept.minimize(Valley(calls), STARTS)
    after, rounds = Valley(), []
    resumed = replace(kept, progress=lambda n, _: rounds.append(n)).minimize(after, STARTS)
    assert same_bits(resumed, whole)
    # It did go on rather than begin anew.
    assert rounds[0] == 2 * calls + 1


def test_a_finished_search_is_not_repeated(tmp_path):
    kept = LBFGS(checkpoint=Checkpoint(str(tmp_path)))
    first = kept.minimize(Valley(), STARTS)
    assert same_bits(kept.minimize(Valley(calls=0), STARTS), first)


@pytest.mark.parametrize(
    "change",
    [
        lambda search, starts: (search, starts + 1e-12),
        lambda search, starts: (search, starts[:4]),
        lambda search, starts: (replace(search, steps=499), starts),
        lambda search, starts: (replace(search, gradient_tolerance=1e-7), starts),
        lambda search, starts: (replace(search, constraint=BOX), starts),
        lambda search, starts: (
            replace(search, checkpoint=replace(search.checkpoint, about="other data")),
            starts,
        ),
    ],
)
def test_another_search_does_not_go_on_from_it(tmp_path, change):
    kept = LBFGS(checkpoint=Checkpoint(str(tmp_path)))
    kept.minimize(Valley(), STARTS)
    other, starts = change(kept, STARTS)
    with pytest.raises(Stopped):
        other.minimize(Valley(calls=0), starts)


def test_a_broken_state_is_refused_by_name(tmp_path):
    kept = LBFGS(checkpoint=Checkpoint(str(tmp_path)))
    kept.minimize(Valley(), STARTS)
    (file,) = tmp_path.iterdir()
    content = file.read_bytes()
    for broken in (b"", content[: len(content) // 2], b"no archive"):
        file.write_bytes(broken)
        with pytest.raises(DataError, match=rf"`{file}` cannot be read .* Delete it"):
            kept.minimize(Valley(), STARTS)


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("in the way")
    kept = LBFGS(checkpoint=Checkpoint(str(tmp_path / "file" / "folder")))
    with pytest.raises(ExecutionError, match="cannot be written to"):
        kept.minimize(Valley(), STARTS)
