"""Remedies of the library, as they are typed here."""

from __future__ import annotations

_TYPED = {
    "Pass `allow_untrusted=True`": "Pass `--allow-untrusted`",
    "Wrap it as `Clipped(policy, lower, upper)`": "Write it as `clipped:LO,HI:POLICY`",
    "for example by `Clipped`": "for example as `clipped:LO,HI:POLICY`",
    "Name fewer contexts": "Name fewer columns by `--context`",
    "or give `propensity` and an outcome model of your own": (
        "or evaluate with `--estimator sn` and `--propensity-model linear-gaussian`"
    ),
    "by `titrant.check`": "by `titrant check`",
    "call it through `evaluate` with `propensity=` a model such as LinearGaussian()": (
        "give `--propensity-model linear-gaussian`"
    ),
}


def as_typed(sentence: str) -> str:
    """Return a sentence of the library with its remedies in the words of the command line."""
    for said, typed in _TYPED.items():
        sentence = sentence.replace(said, typed)
    return sentence
