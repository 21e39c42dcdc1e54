"""Output for people: HTML pages, tables in files, progress, and summaries of edges."""

from ohmlearn.report.html_page import Report

__all__ = ["Report"]
