"""Output for people: HTML pages, tables in files, progress, and summaries of edges."""

from ohmlearn.report.page import Report

__all__ = ["Report"]
