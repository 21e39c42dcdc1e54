"""Output for people: HTML pages, tables in files, progress, and summaries of edges."""

from ohmlearn import _attach_names

# Imported when first used, because few commands make a page.
__getattr__, __dir__, __all__ = _attach_names(__name__)
