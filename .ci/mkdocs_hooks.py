"""Prepares the pages for the site: the README is the first page, links to files beside docs/ lead to the first page or
stand as text, and a style sheet lets tables fit the width."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
STYLE = "css/site.css"
_LINK = re.compile(r"\[([^\]]*)\]\((?!https?:|#)([^)#\s]*)(#[^)\s]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    files.append(File.generated(config, "index.md", content=_relinked(text, "docs/")))
    files.append(File.generated(config, STYLE, content=(ROOT / ".ci" / "site.css").read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    return markdown if page.file.src_uri == "index.md" else _relinked(markdown, "")


def on_page_content(html: str, **_: Any) -> str:
    """The page with its options marked, which are not to be broken at the end of a line."""
    return re.sub(r"<code>(--?[\w-]+)</code>", r'<code class="option">\1</code>', html)


def _relinked(text: str, prefix: str) -> str:
    """A page with links that hold on the site; `prefix` stands before those to the pages of docs/."""

    def relinked(found: re.Match[str]) -> str:
        label, target, anchor = found[1], found[2], found[3] or ""
        if target.endswith("../README.md"):
            return f"[{label}](index.md{anchor})"
        inside = target.removeprefix(prefix)
        if target.startswith(prefix) and not inside.startswith("..") and (ROOT / "docs" / inside).exists():
            return f"[{label}]({inside}{anchor})"
        place = ROOT / target if prefix else ROOT / "docs" / target
        if place.exists():
            # A file of the repository which the site has not.
            return label
        return found[0]

    return _LINK.sub(relinked, text)
