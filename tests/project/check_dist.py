"""Check what is in ``dist``: metadata, contents, and the README's example in an empty environment.

``make check-dist`` builds the sdist, then the wheel from the sdist, and runs this.
"""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LEFT_OUT = (".ci/", ".github/", ".gitignore")
IN_WHEEL = {"ohmlearn/py.typed", "ohmlearn/_core.pyi", "ohmlearn/__init__.py"}


def main() -> None:
    """Check the one sdist and the one wheel in dist."""
    (sdist,), (wheel,) = ((ROOT / "dist").glob(kind) for kind in ("*.tar.gz", "*.whl"))
    subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", str(sdist), str(wheel)], check=True
    )
    check_sdist(sdist)
    check_wheel(wheel)
    check_installed(wheel)
    print(f"{sdist.name} and {wheel.name} are fit to be uploaded")


def check_sdist(path: Path) -> None:
    """Compare with what git tracks."""
    with tarfile.open(path) as archive:
        found = {member.name.split("/", 1)[1] for member in archive if member.isfile()}
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\n")
    wanted = {name for name in listed if name and not name.startswith(LEFT_OUT)} | {"PKG-INFO"}
    found -= {".gitignore"}
    demand(found == wanted, f"sdist: too much {found - wanted}, lacking {wanted - found}")


def check_wheel(path: Path) -> None:
    """Look for types, licence, the extension and its tag, and for strangers."""
    with zipfile.ZipFile(path) as archive:
        names = set(archive.namelist())
        (info,) = {name.split("/")[0] for name in names if ".dist-info/" in name}
        metadata = Parser().parsestr(archive.read(f"{info}/METADATA").decode())
        tags = Parser().parsestr(archive.read(f"{info}/WHEEL").decode()).get_all("Tag")
    demand(names >= IN_WHEEL, f"wheel: lacking {IN_WHEEL - names}")
    demand(f"{info}/licenses/LICENSE" in names, "wheel: lacking the licence")
    strangers = {name for name in names if not name.startswith(("ohmlearn/", f"{info}/"))}
    demand(not strangers, f"wheel: {strangers} is not of the package")
    package = ROOT / "src" / "ohmlearn"
    files = [*package.rglob("*.py"), *(package / "serve" / "page").iterdir()]
    sources = {f"ohmlearn/{file.relative_to(package)}" for file in files}
    demand(names >= sources, f"wheel: lacking {sources - names}")
    (extension,) = (
        name for name in names if name.startswith("ohmlearn/_core") and "pyi" not in name
    )
    # nanobind has no stable ABI before 3.12, nor on free-threaded Python
    stable = sys.version_info >= (3, 12) and not sysconfig.get_config_var("Py_GIL_DISABLED")
    demand(("abi3" in extension) == stable, f"wheel: {extension} on this Python")
    demand(all(("-abi3-" in tag) == stable for tag in tags or [""]), f"wheel: tags {tags}")
    demand(metadata["License-Expression"] == "BSD-3-Clause", "wheel: licence expression")
    version = re.search(r'__version__ = "(.*)"', (package / "__init__.py").read_text())
    demand(version is not None and metadata["Version"] == version[1], "wheel: version")


def check_installed(wheel: Path) -> None:
    """Run the README's example, typed imports and the command in a new environment."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    promised = re.findall(r"^print\(.*\)  # (.*)$", "\n".join(blocks), re.MULTILINE)
    demand(bool(promised), "README: no example that prints something")
    with tempfile.TemporaryDirectory(prefix="ohmlearn-dist-") as folder:
        venv.create(folder, with_pip=True)
        bin_ = Path(folder) / "bin"
        run(folder, bin_ / "pip", "install", "-q", str(wheel))
        printed = "".join(run(folder, bin_ / "python", "-c", code) for code in blocks).splitlines()
        demand(printed == promised, f"README: {printed} was printed, not {promised}")
        shown = run(folder, bin_ / "ohmlearn", "--version")
        demand(wheel.name.split("-")[1] in shown, f"ohmlearn --version: {shown}")
        (Path(folder) / "e.csv").write_text("u,v\na,b\nb,c\n")
        shown = run(folder, bin_ / "ohmlearn", "info", "e.csv")
        demand("3" in shown and "2" in shown, f"ohmlearn info: {shown}")
        run(folder, bin_ / "python", "-m", "pip", "check")


def run(folder: str, *command: object) -> str:
    """Run a command away from the sources; what it prints."""
    words = [str(word) for word in command]
    return subprocess.run(words, cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout


def demand(holds: bool, otherwise: str) -> None:
    """Stop with a message if something does not hold."""
    if not holds:
        sys.exit(otherwise)


if __name__ == "__main__":
    main()
