"""Settings of the documentation site, which ``make docs`` builds."""

import inspect
import re
import sys
from pathlib import Path
from typing import Any

from sphinx.domains.python import PyXRefRole

import ohmlearn

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "_ext"))  # for gallery_style

project = "ohmlearn"
author = "The ohmlearn developers"
copyright = "The ohmlearn developers, BSD 3-Clause"
version = release = ohmlearn.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_click",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["examples"]
templates_path = ["_templates"]
nitpicky = True
nitpick_ignore_regex = [
    # Arguments and attributes are also in single backticks, but they have no page to link to.
    ("py:obj", r"[a-z][a-z_0-9]*"),
]
highlight_language = "none"

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_typehints = "none"  # the docstrings contain the types
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
copybutton_exclude = ".linenos, .gp, .go"

sphinx_gallery_conf = {
    "examples_dirs": ["examples"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"__init__\.py",
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("ohmlearn",),
    "reset_modules": ("gallery_style.reset",),
    "within_subsection_order": "FileNameSortKey",
    "plot_gallery": "True",
    "show_signature": False,
    "min_reported_time": 1000,
    "write_computation_times": False,
    "download_all_examples": False,
    "matplotlib_animations": False,
    "capture_repr": (),
    "image_srcset": ["2x"],
    "thumbnail_size": (640, 260),
}

html_theme = "pydata_sphinx_theme"
html_title = "ohmlearn"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/mark.svg"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {
        "text": "ohmlearn",
        "image_light": "_static/mark.svg",
        "image_dark": "_static/mark.svg",
    },
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "navbar_persistent": ["search-button"],
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
    "pygments_dark_style": "github-dark",
}
html_sidebars = {page: [] for page in ("index", "start", "choosing", "faq", "gallery/index")}

# Pages whose text is a file in the root of the repository; `read_root_page` adjusts their links.
ROOT_PAGES = {
    "architecture": "ARCHITECTURE.md",
    "contributing": "CONTRIBUTING.md",
    "changelog": "CHANGELOG.md",
}

# Full names of all objects in the reference. `NameRole` links `name` in a docstring to one of them.
PUBLIC = [
    f"ohmlearn.{name}"
    for name in re.findall(r"^   ([\w.]+)$", (DOCS / "api.rst").read_text(encoding="utf-8"), re.M)
]


def read_root_page(app: Any, docname: str, source: list[str]) -> None:
    """Replace the text of a page in `ROOT_PAGES` by the file."""
    if docname not in ROOT_PAGES:
        return
    path = DOCS.parent / ROOT_PAGES[docname]
    app.env.note_dependency(str(path))
    text = path.read_text(encoding="utf-8")
    for page, name in ROOT_PAGES.items():
        text = text.replace(f"]({name}", f"]({page}.md")
    source[0] = re.sub(r"\]\(docs/", "](", text)


class NameRole(PyXRefRole):
    """Role for `name` in a docstring: a public object of any module, or an argument."""

    def process_link(self, env: Any, refnode: Any, *args: Any) -> tuple[str, str]:
        """Find the full name; names in the current module take precedence."""
        title, target = super().process_link(env, refnode, *args)
        refnode["reftype"] = "obj"
        name, dot, rest = target.partition(".")
        here = f"{env.ref_context.get('py:module')}.{name}"
        found = [full for full in PUBLIC if full.rpartition(".")[2] == name]
        if found:
            target = (here if here in found else found[0]) + dot + rest
        return title, target


def skip_foreign(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool:
    """Skip members that scikit-learn or the standard library adds to a class."""
    home = getattr(inspect.unwrap(obj) if callable(obj) else obj, "__module__", "") or ""
    if (inspect.getdoc(obj) or "").startswith("Alias for field number"):
        return True  # fields of named tuples; docstrings describe them
    return skip or home.startswith("sklearn") or name in ("set_score_request", "count", "index")


def setup(app: Any) -> None:
    """Register the role and the handlers."""
    app.add_role_to_domain("py", "name", NameRole())
    app.config.default_role = "py:name"
    app.connect("source-read", read_root_page)
    app.connect("autodoc-skip-member", skip_foreign)
