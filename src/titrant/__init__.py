"""Evaluate policies for continuous treatments (doses, prices, bids) from logged data.

Each public name is imported from its room when it is first used, so that
``import titrant`` costs next to nothing. `_HOME` says where a name lives; the
`TYPE_CHECKING` block says the same to type checkers and editors.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from titrant.bandwidth import AveragedBiasPath as AveragedBiasPath
    from titrant.bandwidth import BandwidthPath as BandwidthPath
    from titrant.bandwidth import Fixed as Fixed
    from titrant.bandwidth import LeaveOneOut as LeaveOneOut
    from titrant.bandwidth import PathFit as PathFit
    from titrant.bandwidth import PlugIn as PlugIn
    from titrant.bandwidth import RuleOfThumb as RuleOfThumb
    from titrant.bandwidth import Slope as Slope
    from titrant.bandwidth import Subsampled as Subsampled
    from titrant.bandwidth import TwoBandwidth as TwoBandwidth
    from titrant.curves import Curve as Curve
    from titrant.curves import bandwidth_path as bandwidth_path
    from titrant.curves import curve as curve
    from titrant.data import Columns as Columns
    from titrant.data import LoggedData as LoggedData
    from titrant.data.scan import scan_parquet as scan_parquet
    from titrant.errors import DataError as DataError
    from titrant.errors import ExecutionError as ExecutionError
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
    from titrant.evaluation import Contrast as Contrast
    from titrant.evaluation import Estimate as Estimate
    from titrant.evaluation import compare as compare
    from titrant.evaluation import evaluate as evaluate
    from titrant.execute import Engine as Engine
    from titrant.execute.dask import dask_executor as dask_executor
    from titrant.execute.spark import scan_spark as scan_spark
    from titrant.inference import EmpiricalBernstein as EmpiricalBernstein
    from titrant.inference import Narrow as Narrow
    from titrant.inference import Normal as Normal
    from titrant.inference import PoissonBootstrap as PoissonBootstrap
    from titrant.inference import RobustBiasCorrected as RobustBiasCorrected
    from titrant.kernels import Biweight as Biweight
    from titrant.kernels import Boundary as Boundary
    from titrant.kernels import Epanechnikov as Epanechnikov
    from titrant.kernels import Gaussian as Gaussian
    from titrant.kernels import Triangular as Triangular
    from titrant.kernels import Uniform as Uniform
    from titrant.learn.baselines import best_constant as best_constant
    from titrant.learn.baselines import direct_argmin as direct_argmin
    from titrant.learn.baselines import direct_linear as direct_linear
    from titrant.learn.baselines import discretized_policy as discretized_policy
    from titrant.learn.baselines import mean_dose as mean_dose
    from titrant.learn.baselines import median_regression as median_regression
    from titrant.learn.classes import ConstantClass as ConstantClass
    from titrant.learn.classes import LinearClass as LinearClass
    from titrant.learn.classes import RBFClass as RBFClass
    from titrant.learn.cpo import CPO as CPO
    from titrant.learn.honest import HonestValue as HonestValue
    from titrant.learn.stacked import StackedDR as StackedDR
    from titrant.learning import PolicyLearner as PolicyLearner
    from titrant.outcome import Stack as Stack
    from titrant.policies import RBF as RBF
    from titrant.policies import Clipped as Clipped
    from titrant.policies import Constant as Constant
    from titrant.policies import Function as Function
    from titrant.policies import Linear as Linear
    from titrant.policies import Rounded as Rounded
    from titrant.policies import StatusQuo as StatusQuo
    from titrant.policies import load_policy as load_policy
    from titrant.propensity import DensityAverage as DensityAverage
    from titrant.propensity import GatedMixture as GatedMixture
    from titrant.propensity import GaussianMixture as GaussianMixture
    from titrant.propensity import HeteroscedasticGaussian as HeteroscedasticGaussian
    from titrant.propensity import KernelConditional as KernelConditional
    from titrant.propensity import Known as Known
    from titrant.propensity import LinearGaussian as LinearGaussian
    from titrant.propensity import LocationScale as LocationScale
    from titrant.propensity import MultivariateGaussian as MultivariateGaussian
    from titrant.propensity import SmoothLocation as SmoothLocation
    from titrant.propensity import SmoothLocationScale as SmoothLocationScale
    from titrant.trust import check as check

__version__ = "0.1.0"

_HOME = {
    "AveragedBiasPath": "bandwidth",
    "BandwidthPath": "bandwidth",
    "Biweight": "kernels",
    "Boundary": "kernels",
    "CPO": "learn.cpo",
    "Clipped": "policies",
    "Columns": "data",
    "Comparison": "evaluation",
    "Constant": "policies",
    "ConstantClass": "learn.classes",
    "Contrast": "evaluation",
    "Curve": "curves",
    "DataError": "errors",
    "DensityAverage": "propensity",
    "DirectMethod": "estimators",
    "Discretized": "estimators",
    "DoublyRobust": "estimators",
    "EmpiricalBernstein": "inference",
    "Engine": "execute",
    "Epanechnikov": "kernels",
    "Estimate": "evaluation",
    "ExecutionError": "errors",
    "Fixed": "bandwidth",
    "Function": "policies",
    "GatedMixture": "propensity",
    "Gaussian": "kernels",
    "GaussianMixture": "propensity",
    "HeteroscedasticGaussian": "propensity",
    "HonestValue": "learn.honest",
    "IPW": "estimators",
    "InvalidArgument": "errors",
    "KernelConditional": "propensity",
    "Known": "propensity",
    "LeaveOneOut": "bandwidth",
    "Linear": "policies",
    "LinearClass": "learn.classes",
    "LinearGaussian": "propensity",
    "LocationScale": "propensity",
    "LoggedData": "data",
    "MultivariateGaussian": "propensity",
    "Narrow": "inference",
    "NoOverlap": "errors",
    "Normal": "inference",
    "PathFit": "bandwidth",
    "PlugIn": "bandwidth",
    "PoissonBootstrap": "inference",
    "PolicyFileError": "errors",
    "PolicyLearner": "learning",
    "RBF": "policies",
    "RBFClass": "learn.classes",
    "RobustBiasCorrected": "inference",
    "Rounded": "policies",
    "RuleOfThumb": "bandwidth",
    "SelfNormalized": "estimators",
    "Slope": "bandwidth",
    "SmoothLocation": "propensity",
    "SmoothLocationScale": "propensity",
    "Stack": "outcome",
    "StackedDR": "learn.stacked",
    "StatusQuo": "policies",
    "Subsampled": "bandwidth",
    "TitrantError": "errors",
    "Triangular": "kernels",
    "TwoBandwidth": "bandwidth",
    "Uniform": "kernels",
    "UntrustedEstimate": "errors",
    "bandwidth_path": "curves",
    "best_constant": "learn.baselines",
    "check": "trust",
    "compare": "evaluation",
    "curve": "curves",
    "dask_executor": "execute.dask",
    "direct_argmin": "learn.baselines",
    "direct_linear": "learn.baselines",
    "discretized_policy": "learn.baselines",
    "evaluate": "evaluation",
    "load_policy": "policies",
    "mean_dose": "learn.baselines",
    "median_regression": "learn.baselines",
    "scan_parquet": "data.scan",
    "scan_spark": "execute.spark",
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
