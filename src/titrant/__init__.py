"""Evaluate policies for continuous treatments (doses, prices, bids) from logged data.

Each public name is imported from its room when it is first used, so that
``import titrant`` costs next to nothing. `_HOME` says where a name lives; the
`TYPE_CHECKING` block says the same to type checkers and editors.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from titrant.data import Columns as Columns
    from titrant.data import LoggedData as LoggedData
    from titrant.errors import DataError as DataError
    from titrant.errors import InvalidArgument as InvalidArgument
    from titrant.errors import NoOverlap as NoOverlap
    from titrant.errors import PolicyFileError as PolicyFileError
    from titrant.errors import TitrantError as TitrantError
    from titrant.errors import UntrustedEstimate as UntrustedEstimate
    from titrant.estimators import IPW as IPW
    from titrant.estimators import DirectMethod as DirectMethod
    from titrant.estimators import Discretized as Discretized
    from titrant.estimators import DoublyRobust as DoublyRobust
    from titrant.estimators import SelfNormalized as SelfNormalized
    from titrant.evaluation import Comparison as Comparison
    from titrant.evaluation import Estimate as Estimate
    from titrant.evaluation import compare as compare
    from titrant.evaluation import evaluate as evaluate
    from titrant.kernels import Biweight as Biweight
    from titrant.kernels import Epanechnikov as Epanechnikov
    from titrant.kernels import Gaussian as Gaussian
    from titrant.kernels import Triangular as Triangular
    from titrant.kernels import Uniform as Uniform
    from titrant.policies import RBF as RBF
    from titrant.policies import Clipped as Clipped
    from titrant.policies import Constant as Constant
    from titrant.policies import Linear as Linear
    from titrant.policies import Rounded as Rounded
    from titrant.policies import load_policy as load_policy
    from titrant.propensity import GaussianMixture as GaussianMixture
    from titrant.propensity import HeteroscedasticGaussian as HeteroscedasticGaussian
    from titrant.propensity import KernelConditional as KernelConditional
    from titrant.propensity import Known as Known
    from titrant.propensity import LinearGaussian as LinearGaussian
    from titrant.propensity import LocationScale as LocationScale
    from titrant.propensity import MultivariateGaussian as MultivariateGaussian
    from titrant.trust import check as check

__version__ = "0.1.0"

_HOME = {
    "Biweight": "kernels",
    "Clipped": "policies",
    "Columns": "data",
    "Comparison": "evaluation",
    "Constant": "policies",
    "DataError": "errors",
    "DirectMethod": "estimators",
    "Discretized": "estimators",
    "DoublyRobust": "estimators",
    "Epanechnikov": "kernels",
    "Estimate": "evaluation",
    "Gaussian": "kernels",
    "GaussianMixture": "propensity",
    "HeteroscedasticGaussian": "propensity",
    "IPW": "estimators",
    "InvalidArgument": "errors",
    "KernelConditional": "propensity",
    "Known": "propensity",
    "Linear": "policies",
    "LinearGaussian": "propensity",
    "LocationScale": "propensity",
    "LoggedData": "data",
    "MultivariateGaussian": "propensity",
    "NoOverlap": "errors",
    "PolicyFileError": "errors",
    "RBF": "policies",
    "Rounded": "policies",
    "SelfNormalized": "estimators",
    "TitrantError": "errors",
    "Triangular": "kernels",
    "Uniform": "kernels",
    "UntrustedEstimate": "errors",
    "check": "trust",
    "compare": "evaluation",
    "evaluate": "evaluation",
    "load_policy": "policies",
}

__all__ = list(_HOME)


def __getattr__(name: str) -> object:
    """Import a public name from its room on first use and keep it (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module 'titrant' has no attribute {name!r}")
    value = getattr(import_module(f"titrant.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
