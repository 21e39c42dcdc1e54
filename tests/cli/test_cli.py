"""The command line: what it prints, how it fails, what it imports."""

import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner, Result

import ohmlearn
from ohmlearn import demo
from ohmlearn.cli import main


def invoke(*args: str) -> Result:
    return CliRunner().invoke(main, list(args))


def test_version_is_that_of_the_package():
    assert invoke("--version").output == f"ohmlearn, version {ohmlearn.__version__}\n"


def test_help_and_version_import_nothing_heavy():
    code = """
import sys
from ohmlearn.cli import main
for args in (["--help"], ["demo", "--help"], ["--version"]):
    main(args, standalone_mode=False)
print("heavy:", sorted({"numpy", "scipy", "sklearn", "joblib", "matplotlib"} & sys.modules.keys()))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Commands:\n" in run.stdout
    assert "\n  demo " in run.stdout
    assert run.stdout.endswith("heavy: []\n")


def test_demo_prints_the_identity_and_draws(tmp_path: Path):
    picture = tmp_path / "new folder" / "demo.png"
    result = invoke("demo", "--nodes", "210", "-o", str(picture))
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert lines[0].startswith("Graph      210 nodes, ")
    assert lines[0].endswith(", 1 component")
    assert any(line.strip().startswith("method direct (at most 500 nodes)") for line in lines)
    assert any("resistance = 209.000000; nodes - components = 209" in line for line in lines)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 10_000


def test_demo_is_reproducible_and_the_seed_counts():
    first, again, other = (demo.make_archipelago(210, seed).graph for seed in (0, 0, 1))
    assert first == again
    assert first != other


def test_bridges_of_the_demo_have_the_largest_leverage():
    archipelago = demo.make_archipelago(350, seed=0)
    leverage = demo.measure_leverage(archipelago.graph).values
    u, v, _ = archipelago.graph.edges()
    island = np.arange(350) * 7 // 350
    bridges = np.flatnonzero(island[u] != island[v])
    assert len(bridges) == 7
    assert set(np.argsort(-leverage)[:7]) == set(bridges)
    np.testing.assert_allclose(leverage.max(), 1.0, rtol=1e-9)  # the only way to the last island


def test_voltages_of_the_demo_agree_with_the_pseudo_inverse():
    archipelago = demo.make_archipelago(210, seed=3)
    solution = demo.solve(archipelago)
    # The default cutoff, 1e-15, can take the rounded zero eigenvalue for a real one.
    inverse = np.linalg.pinv(archipelago.graph.laplacian().toarray(), rcond=1e-10, hermitian=True)
    expected = inverse[:, solution.source] - inverse[:, solution.sink]
    np.testing.assert_allclose(solution.voltages, expected, atol=1e-9)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["no-such-command"], "No such command 'no-such-command'"),
        (["demo", "--nodes", "10"], "10 is not in the range 100<=x<=5000"),
        (["demo", "--seed", "-1"], "-1 is not in the range x>=0"),
        (["demo", "-o", "."], "File '.' is a directory"),
    ],
)
def test_wrong_usage_exits_with_2(args: list[str], message: str):
    result = invoke(*args)
    assert result.exit_code == 2
    assert message in result.output


def test_missing_extra_is_one_line_naming_the_install_command(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = invoke("demo")
    assert result.exit_code == 1
    assert result.output == (
        'Error: matplotlib is needed for this; install it with pip install "ohmlearn[plot]"\n'
    )


def test_unwritable_output_is_one_line(tmp_path: Path):
    (tmp_path / "file").write_text("")
    result = invoke("demo", "--nodes", "100", "-o", str(tmp_path / "file" / "demo.png"))
    assert result.exit_code == 1
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
