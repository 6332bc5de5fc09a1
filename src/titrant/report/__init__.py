"""Reports: results in, one self-contained HTML page out; nothing is read, written or estimated."""

from titrant.report.content import Report
from titrant.report.page import render

__all__ = ["Report", "render"]
