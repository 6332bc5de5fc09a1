"""Reports: results in, one self-contained HTML page out.

`gather` asks the library for what a page shows and returns a frozen `Report`; `render` turns that
into the page. Nothing is read or written, and the page is a function of the report.
"""

from titrant.reporting.content import Report
from titrant.reporting.gather import gather
from titrant.reporting.page import render
from titrant.reporting.written import report

__all__ = ["Report", "gather", "render", "report"]
