"""Opens a page of ``ohmlearn label`` in a real browser, for ``make check-report``.

Pictures in light and dark mode and a print are left in ``out/report`` to be looked at; the checks
only see to it that something was drawn, on the right ground, without anything from the network.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from click.testing import CliRunner
from matplotlib.image import imread

from ohmlearn import gallery
from ohmlearn.cli import main

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
OUT = Path("out/report")


def make_page(folder: Path) -> Path:
    """Label a block model and return its page."""
    u, v, _ = gallery.stochastic_blocks([200, 150, 100], 0.5, bridges=4, random_state=0).edges()
    edges, labels, page = folder / "edges.csv", folder / "labels.csv", OUT / "page.html"
    np.savetxt(edges, np.column_stack([u, v]), "%d", ",", header="u,v", comments="")
    labels.write_text("node,label\n0,cost $5\n1,cost $5\n210,<b>rye\n360,wheat\n")
    command = [
        "label",
        edges,
        "--labels",
        labels,
        "-o",
        folder / "out.csv",
        "--option",
        "certify=yes",
    ]
    command += ["--report", page]
    result = CliRunner().invoke(main, [str(part) for part in command])
    if result.exit_code != 0:
        sys.exit(result.output)
    return page


def browse(browser: str, page: Path, *options: str) -> str:
    """Open the page without network; return what the browser printed."""
    with tempfile.TemporaryDirectory() as profile:
        run = subprocess.run(
            [
                browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                "--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr", "--v=0",
                f"--user-data-dir={profile}", "--window-size=1000,2600", *options,
                page.resolve().as_uri(),
            ],
            capture_output=True, text=True, timeout=120, check=True,
        )  # fmt: skip
    return run.stdout + run.stderr


def check_picture(path: Path, dark: bool) -> None:
    """Refuse a picture that is blank or on the wrong ground."""
    pixels = imread(path)[:, :, :3]
    ground = float(pixels[5, 5].mean())
    assert (ground < 0.3) == dark, f"{path}: the ground has brightness {ground:.2f}"
    for third in np.array_split(pixels[:2000], 3):
        drawn = float(np.mean(np.abs(third - pixels[5, 5]).max(axis=2) > 0.1))
        assert drawn > 0.01, f"{path}: only {drawn:.2%} of a third is drawn on"


def check() -> None:
    """Make the page, open it, check it."""
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        sys.exit(f"a browser is needed: one of {', '.join(BROWSERS)}")
    OUT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        page = make_page(Path(folder))
    for name, scheme in (("dark", 0), ("light", 1)):
        picture = OUT / f"{name}.png"
        setting = f"--blink-settings=preferredColorScheme={scheme}"
        printed = browse(browser, page, f"--screenshot={picture.resolve()}", setting)
        assert "ERR_NAME_NOT_RESOLVED" not in printed, "the page loads something from the network"
        assert "CONSOLE" not in printed, printed
        check_picture(picture, dark=name == "dark")
    dom = browse(browser, page, "--dump-dom")
    assert dom.count("<figure>") == 4, "four figures are expected"
    assert "&lt;b&gt;rye" in dom, "names must be escaped"
    assert "cost $5" in dom, "dollars must stay dollars"
    paper = OUT / "print.pdf"
    browse(browser, page, f"--print-to-pdf={paper.resolve()}")
    assert paper.read_bytes().startswith(b"%PDF"), "no print"
    print(f"The page stands in light, dark and print: {OUT}/light.png, dark.png, print.pdf")


if __name__ == "__main__":
    check()
