"""Room 7, bandwidth: how far from the policy's dose a logged dose still counts."""

from titrant.bandwidth.averaged_bias_path import AveragedBiasPath
from titrant.bandwidth.base import Bandwidth, BandwidthSelector, Fixed, as_selector
from titrant.bandwidth.leave_one_out import LeaveOneOut, Subsampled
from titrant.bandwidth.path import DEFAULT_FACTORS, BandwidthPath, path_of, path_search
from titrant.bandwidth.path_fits import PathFit, Slope, TwoBandwidth
from titrant.bandwidth.plug_in import PlugIn, RuleOfThumb

SELECTORS: tuple[BandwidthSelector, ...] = (
    AveragedBiasPath(),
    TwoBandwidth(),
    PathFit(),
    RuleOfThumb(),
    PlugIn(),
    PlugIn(as_printed=True),
    Slope(),
    LeaveOneOut(),
    Subsampled(),
)
"""Every selector that chooses from data; the law tests run over this list."""

__all__ = [
    "DEFAULT_FACTORS",
    "SELECTORS",
    "AveragedBiasPath",
    "Bandwidth",
    "BandwidthPath",
    "BandwidthSelector",
    "Fixed",
    "LeaveOneOut",
    "PathFit",
    "PlugIn",
    "RuleOfThumb",
    "Slope",
    "Subsampled",
    "TwoBandwidth",
    "as_selector",
    "path_of",
    "path_search",
]
