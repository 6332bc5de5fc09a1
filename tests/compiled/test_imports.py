"""numba is loaded by the first long log, not before."""

from __future__ import annotations

import subprocess
import sys

FEW = """
import sys
import numpy as np
import titrant as tt
rng = np.random.default_rng(0)
x = rng.uniform(size=300)
t = x + 0.5 * rng.normal(size=300)
log = tt.LoggedData(x[:, None], t, (t - x) ** 2, np.full(300, 0.5))
tt.evaluate(log, tt.Constant(0.5), estimator=tt.SelfNormalized(), allow_untrusted=True)
assert "numba" not in sys.modules
"""


def test_few_rows_do_without_numba():
    subprocess.run([sys.executable, "-c", FEW], check=True)
