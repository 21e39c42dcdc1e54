"""The command line: what it prints, how it fails, what it imports."""

import dataclasses
import inspect
import os
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner, Result

import ohmlearn
from ohmlearn._defaults import EPSILON, LABEL_EPSILON, NEIGHBORS, WEIGHTS
from ohmlearn.cli import main
from ohmlearn.reading.file_names import FORMATS
from ohmlearn.reading.read_options import ReadOptions


def invoke(*args: str) -> Result:
    return CliRunner().invoke(main, list(args))


def test_version_is_that_of_the_package():
    assert invoke("--version").output == f"ohmlearn, version {ohmlearn.__version__}\n"


@pytest.mark.slow
def test_help_and_version_import_nothing_heavy():
    code = """
import sys
from ohmlearn._defaults import EPSILON, LABEL_EPSILON, NEIGHBORS, WEIGHTS
from ohmlearn.cli import main
commands = ("", "label", "suggest", "paper run", "serve")
for args in (*(f"{command} --help" for command in commands), "--version"):
    main(args.split(), standalone_mode=False)
heavy = {"numpy", "scipy", "sklearn", "joblib", "matplotlib"}
heavy |= {"starlette", "uvicorn", "sqlite3", "asyncio"}
print("heavy:", sorted(heavy & sys.modules.keys()))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Commands:\n  certify" in run.stdout
    assert run.stdout.endswith("heavy: []\n")


@pytest.mark.parametrize("command", ["demo", "paper run"])
def test_missing_extra_is_one_line_naming_the_install_command(
    monkeypatch: pytest.MonkeyPatch, command: str
):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = invoke(*command.split())
    assert result.exit_code == 1
    assert result.output == (
        'Error: matplotlib is needed for this; install it with pip install "ohmlearn[plot]"\n'
    )


def test_unexpected_errors_name_their_type_and_debug_shows_them(monkeypatch: pytest.MonkeyPatch):
    @click.command()
    def broken() -> None:
        raise KeyError("lost")

    monkeypatch.setitem(main.commands, "broken", broken)
    result = invoke("broken")
    assert result.exit_code == 1
    assert result.output == "Error: KeyError: 'lost' (--debug shows where)\n"
    with pytest.raises(KeyError, match="lost"):
        CliRunner().invoke(main, ["--debug", "broken"], catch_exceptions=False)


def test_completion_prints_scripts_and_completes():
    for shell in ("bash", "zsh", "fish"):
        assert "_OHMLEARN_COMPLETE" in invoke("completion", shell).output
    variables = {
        "_OHMLEARN_COMPLETE": "bash_complete",
        "COMP_WORDS": "ohmlearn spa",
        "COMP_CWORD": "1",
    }
    completed = CliRunner().invoke(main, [], env=variables, prog_name="ohmlearn")
    assert completed.stdout == "plain,sparsify\n"


def test_edges_have_one_option_or_key_for_each_field_of_read_options():
    command = main.commands["info"]
    defaults = command.make_context("info", ["edges.csv"]).params
    fields = {field.name: field.default for field in dataclasses.fields(ReadOptions)}
    del fields["filesystem"]  # an object; the command line has addresses
    assert {name: defaults[name] for name in fields} == fields
    text = " ".join(invoke("info", "--help-all").output.split())
    *formats, last = FORMATS
    assert f"{', '.join(formats)} or {last}" in text


def test_help_has_groups_and_shows_common_options_first():
    options = [one for one in main.commands["label"].params if isinstance(one, click.Option)]
    assert len(options) <= 37
    assert {one.group for one in options} == {
        "Input", "Output", "Method", "Time", "Continue", "Machine"
    }  # fmt: skip
    assert sum(one.common for one in options) == 10
    short, full = (invoke("label", how).output for how in ("--help", "--help-all"))
    for one in options:
        shown = f"  {one.get_help_record(click.Context(main.commands['label']))[0]}"
        assert shown in full
        assert (shown in short) == one.common


def commands() -> Iterator[click.Command]:
    for command in main.commands.values():
        yield from command.commands.values() if isinstance(command, click.Group) else [command]


def test_help_texts_are_sentences():
    for command in commands():
        first = str(command.help).splitlines()[0]
        for text in (first, *(getattr(one, "help", None) or "." for one in command.params)):
            assert text.endswith("."), f"{command.name}: {text}"
    for group in ([], ["log"], ["paper"]):
        assert "..." not in invoke(*group, "--help").output.partition("Commands:")[2]


def test_defaults_are_the_same_in_python_and_on_the_command_line():
    def default(function: object, name: str) -> object:
        return inspect.signature(function).parameters[name].default

    options = {
        (command, one.name): one.default
        for command in ("label", "suggest", "serve", "sparsify")
        for one in main.commands[command].params
    }
    for function in (ohmlearn.sparsify, ohmlearn.StreamingSparsifier):
        assert default(function, "epsilon") == options["sparsify", "epsilon"] == EPSILON
    labelling = [ohmlearn.HFSClassifier, ohmlearn.HFSRegressor, ohmlearn.GraphFeatureClassifier]
    for function in labelling:
        assert default(function, "epsilon") == LABEL_EPSILON
    assert {options[command, "epsilon"] for command in ("label", "suggest", "serve")} == {
        LABEL_EPSILON
    }
    for function in (*labelling[:2], ohmlearn.knn_edges):
        assert default(function, "weights") == WEIGHTS
        assert default(function, "n_jobs") is None
    for function in labelling[:2]:
        assert default(function, "n_neighbors") == NEIGHBORS
        assert default(function, "neighbors") == default(ohmlearn.knn_edges, "method") == "exact"
    parameters = main.commands["label"].make_context("label", ["e", "--labels", "l"]).params
    assert parameters["threads"] == len(os.sched_getaffinity(0))
    for name in ("normalization", "calibration"):
        assert parameters[name] == default(ohmlearn.HFSClassifier, name)
    assert {options[command, "seed"] for command in ("label", "serve", "sparsify")} == {0}
