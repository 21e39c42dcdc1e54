"""The command line. numpy and the rest are imported by the commands: ``--help`` must be quick."""

from ohmlearn.cli import experiments, graphs, label, log, serve, suggest
from ohmlearn.cli.group import main

__all__ = ["experiments", "graphs", "label", "log", "main", "serve", "suggest"]
