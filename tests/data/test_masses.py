"""Point masses: which doses are found, which are named, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import titrant as tt
from titrant.data.masses import PointMasses, point_masses
from titrant.errors import DataError, InvalidArgument

N = 1000


def _draws() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    z, u = rng.normal(size=N), rng.uniform(size=N)
    return {
        "continuous": z,
        "rounded to .2 sd": np.round(z / 0.2) * 0.2,
        "rounded to .05 sd": np.round(z / 0.05) * 0.05,
        "ages": np.round(rng.normal(45.0, 12.0, N)),
        "1 to 100": rng.integers(1, 101, N).astype(float),
        "counts around 30": rng.poisson(30.0, N).astype(float),
        "a few zeros": np.where(u < 0.05, 0.0, np.exp(z)),
        "mostly zeros": np.where(u < 0.6, 0.0, np.exp(z)),
        "cap": np.minimum(z, 1.0),
        "floor and cap": np.clip(z, -1.0, 1.0),
        "heaps": np.where(u < 0.3, np.round(z), z),
        "default price": np.where(u < 0.3, 9.99, 10.0 + z),
        "counts": rng.poisson(2.0, N).astype(float),
        "half tablets": rng.integers(1, 9, N) / 2.0,
        "ten levels": rng.integers(0, 10, N).astype(float),
        "multiples of 5 mg": 5.0 * np.round(rng.normal(35.0, 11.0, N) / 5.0),
        "two doses": np.where(u < 0.3, 1.0, 2.0),
    }


DRAWS = _draws()
CONTINUOUS = (
    "continuous",
    "rounded to .2 sd",
    "rounded to .05 sd",
    "ages",
    "1 to 100",
    "counts around 30",
)
MIXED = {
    "a few zeros": ([0.0], 0.0, np.inf),
    "mostly zeros": ([0.0], 0.0, np.inf),
    "cap": ([1.0], -np.inf, 1.0),
    "floor and cap": ([-1.0, 1.0], -1.0, 1.0),
    "heaps": ([-1.0, 0.0, 1.0, 2.0], -np.inf, np.inf),
    "default price": ([9.99], -np.inf, np.inf),
}
LEVELS = ("counts", "half tablets", "ten levels", "multiples of 5 mg", "two doses")


def found(name: str) -> PointMasses:
    masses = point_masses(DRAWS[name])
    assert masses is not None
    return masses


def test_every_draw_is_of_one_kind() -> None:
    assert {*CONTINUOUS, *MIXED, *LEVELS} == set(DRAWS)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_doses_that_vary_freely_have_none(name: str) -> None:
    assert point_masses(DRAWS[name]) is None


@pytest.mark.parametrize("name", MIXED)
def test_point_masses_among_other_doses(name: str) -> None:
    values, low, high = MIXED[name]
    masses = found(name)
    assert not masses.levels
    assert masses.values.tolist() == values
    # One at the end of all doses bounds the others.
    assert (masses.low, masses.high) == (low, high)
    np.testing.assert_allclose(masses.shares, [np.mean(DRAWS[name] == v) for v in values])


@pytest.mark.parametrize("name", LEVELS)
def test_levels(name: str) -> None:
    masses = found(name)
    assert masses.levels
    assert masses.shares.sum() > 0.9
    assert set(masses.values) <= set(DRAWS[name])
    assert (masses.low, masses.high) == (-np.inf, np.inf)


@pytest.mark.parametrize("name", DRAWS)
def test_neither_units_nor_order_matter(name: str) -> None:
    masses, t = point_masses(DRAWS[name]), DRAWS[name]
    other = point_masses((4.0 * t)[::-1])
    assert (masses is None) == (other is None)
    if masses is not None and other is not None:
        np.testing.assert_array_equal(4.0 * masses.values, other.values)
        assert masses.levels == other.levels


def test_too_few_rows_show_no_point_mass() -> None:
    assert point_masses(np.repeat([1.0, 2.0], 24)) is None  # 48 rows
    assert point_masses(np.repeat([1.0, 2.0], 25)) is not None
    z = np.random.default_rng(0).normal(size=400)
    z[:19] = 0.0
    assert point_masses(z) is None
    z[:20] = 0.0
    assert point_masses(z) is not None


def test_named_ones_override() -> None:
    t = DRAWS["a few zeros"]
    assert point_masses(t, ()) is None
    one = float(t[t > 0.0][0])
    masses = point_masses(t, (one,))
    assert masses is not None
    assert masses.values.tolist() == [one]
    # A part of a log, such as a half of it, need not have them all.
    part = point_masses(t, (-3.0, 0.0))
    assert part is not None
    assert part.values.tolist() == [0.0]
    assert point_masses(t, (-3.0,)) is None
    with pytest.raises(DataError, match="they need 50"):
        point_masses(t[:40], (0.0,))


def test_which_mass_a_dose_is() -> None:
    masses = PointMasses(
        np.array([0.0, 0.3, 5.0]), np.full(3, 0.2), levels=False, low=0.0, high=np.inf
    )
    # .1 + .2 is .3 but for rounding.
    t = np.array([0.1 + 0.2, 0.0, 5.0, 4.99, -1.0, 7.0])
    assert masses.index(t).tolist() == [1, 0, 2, -1, -1, -1]
    one = PointMasses(np.array([0.0]), np.ones(1), levels=False, low=0.0, high=np.inf)
    assert one.index(np.array([0.0, 1e-12, -1.0])).tolist() == [0, -1, -1]


def test_gaps_and_spacing_of_levels() -> None:
    masses = PointMasses(
        np.array([1.0, 2.0, 4.0]), np.full(3, 1 / 3), levels=True, low=-np.inf, high=np.inf
    )
    assert masses.spacing.tolist() == [1.0, 1.5, 2.0]
    assert masses.gap(np.array([1.5, 3.9, 0.5, 6.0])).tolist() == [1.0, 2.0, 0.5, 2.0]


def test_a_log_keeps_what_is_named() -> None:
    t = DRAWS["a few zeros"].copy()
    t[-1] = 5.0
    log = tt.LoggedData(np.zeros((N, 1)), t, t, atoms=[5, 0.0, 0])
    assert log.atoms == (0.0, 5.0)
    for other in (
        log.rows(slice(3)),
        log.rows([1, 2]),
        log.with_bounds((0, None)),
        log.numbered(9),
    ):
        assert other.atoms == (0.0, 5.0)
    assert log.with_atoms(()).atoms == ()
    assert log.with_atoms(None).atoms is None
    table = {"t": t, "y": t, "x": t}
    named = {"treatment": "t", "outcome": "y", "context": "x"}
    assert tt.LoggedData.from_frame(table, **named, atoms=(0,)).atoms == (0.0,)
    assert tt.LoggedData.from_frame(table, **named).atoms is None


def test_what_is_refused() -> None:
    t = DRAWS["a few zeros"]
    with pytest.raises(InvalidArgument, match="`atoms` of `LoggedData` must be a list of doses"):
        tt.LoggedData(np.zeros((N, 1)), t, t, atoms="none")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="No logged dose is -3, one of `atoms`"):
        tt.LoggedData(np.zeros((N, 1)), t, t, atoms=[-3, 0])
    with pytest.raises(InvalidArgument, match="treatment of several doses"):
        tt.LoggedData(np.zeros((N, 1)), np.column_stack([t, t + 1.0]), t, atoms=[0.0])
