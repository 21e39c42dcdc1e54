"""What is shown of a result: pages, tables in files, progress, summaries."""

from ohmlearn.report.page import Report

__all__ = ["Report"]
