"""The command line. numpy and the rest are imported by the commands: ``--help`` must be quick."""

from ohmlearn.cli import (  # noqa: F401 (each adds its commands)
    graph_commands,
    label_command,
    log_command,
    paper_command,
    serve_command,
    suggest_command,
)
from ohmlearn.cli.main import main

__all__ = ["main"]
