"""The command line: what it prints, how it fails, what it imports."""

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

import ohmlearn
from ohmlearn.cli import main
from ohmlearn.reading.file_names import FORMATS
from ohmlearn.reading.read_options import ReadOptions


def invoke(*args: str) -> Result:
    return CliRunner().invoke(main, list(args))


def test_version_is_that_of_the_package():
    assert invoke("--version").output == f"ohmlearn, version {ohmlearn.__version__}\n"


def test_help_and_version_import_nothing_heavy():
    code = """
import sys
from ohmlearn.cli import main
for args in ("--help", "label --help", "suggest --help", "paper run --help", "--version"):
    main(args.split(), standalone_mode=False)
print("heavy:", sorted({"numpy", "scipy", "sklearn", "joblib", "matplotlib"} & sys.modules.keys()))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Commands:\n  certify" in run.stdout
    assert run.stdout.endswith("heavy: []\n")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["no-such-command"], "No such command 'no-such-command'"),
        (["demo", "--points", "10"], "10 is not in the range 300<=x<=100000"),
        (["demo", "--seed", "-1"], "-1 is not in the range x>=0"),
        (["demo", "-o", "."], "File '.' is a directory"),
        (["paper", "run", "--paper-scheme", "most"], "'most' is not one of 'none', 'some', 'all'"),
    ],
)
def test_wrong_usage_exits_with_2(args: list[str], message: str):
    result = invoke(*args)
    assert result.exit_code == 2
    assert message in result.output


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


def test_unwritable_output_is_one_line(tmp_path: Path):
    (tmp_path / "file").write_text("")
    options = ("--points", "605", "--neighbors", "225", "-o", str(tmp_path / "file" / "demo.html"))
    result = invoke("demo", *options)
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: ")
    assert str(tmp_path / "file") in result.stderr
    assert result.stderr.count("\n") == 1


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


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_and_completes(shell: str):
    assert "_OHMLEARN_COMPLETE" in invoke("completion", shell).output
    environment = {
        "_OHMLEARN_COMPLETE": "bash_complete",
        "COMP_WORDS": "ohmlearn spa",
        "COMP_CWORD": "1",
    }
    code = "from ohmlearn.cli import main; main(prog_name='ohmlearn')"
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert run.stdout == "plain,sparsify\n"


def test_edges_have_one_option_for_each_field_of_read_options():
    command = main.commands["info"]
    options = {parameter.name: parameter for parameter in command.params}
    defaults = command.make_context("info", ["edges.csv"]).params
    fields = {field.name: field.default for field in dataclasses.fields(ReadOptions)}
    del fields["filesystem"]  # an object; the command line has addresses
    assert {name: defaults[name] for name in fields} == fields
    assert list(options["format"].type.choices) == list(FORMATS)
