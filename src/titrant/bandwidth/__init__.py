"""Room 7, bandwidth: how far from the policy's dose a logged dose still counts."""

from titrant.bandwidth.averaged_bias_path import AveragedBiasPath
from titrant.bandwidth.base import Bandwidth, BandwidthSelector, as_selector
from titrant.bandwidth.fixed import Fixed
from titrant.bandwidth.path import DEFAULT_FACTORS, BandwidthPath, path_of
from titrant.bandwidth.rule_of_thumb import RuleOfThumb

SELECTORS: tuple[BandwidthSelector, ...] = (AveragedBiasPath(), RuleOfThumb())
"""Every selector that chooses from data; the law tests run over this list."""

__all__ = [
    "DEFAULT_FACTORS",
    "SELECTORS",
    "AveragedBiasPath",
    "Bandwidth",
    "BandwidthPath",
    "BandwidthSelector",
    "Fixed",
    "RuleOfThumb",
    "as_selector",
    "path_of",
]
