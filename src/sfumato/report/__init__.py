"""Tell: the report of a comparison, as a page that needs no network and as its JSON twin."""

from sfumato.report.content import twin
from sfumato.report.page import check_report, render, write_pictures, write_report

__all__ = ["check_report", "render", "twin", "write_pictures", "write_report"]
