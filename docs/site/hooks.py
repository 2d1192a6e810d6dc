"""Hooks of mkdocs: the pages are written for a code host, and become a site unchanged.

Links out of `docs/`, such as `../benchmarks/NOTES.md`, lead to copies in the site's folder
`project/`: Markdown and notebooks become pages there, any other file is copied.
"""

import json
import logging
import posixpath
import re
from pathlib import Path
from urllib.parse import unquote

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import pexeso

ROOT = Path(__file__).resolve().parent.parent.parent
DOCS = "docs/"
COPIES = "project/"
PROJECT_PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
"""Pages of the project that the navigation names."""

_LOG = logging.getLogger("mkdocs.plugins.pexeso")
_LINK = re.compile(r"(\]\()([^)\s:]+)(?=\))")
_FENCE = re.compile(r"^(`{3,})([a-z]*)[^`\n]*\n(.*?)^\1$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"(`+)[^`]+\1")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files of the project that pages lead to, and those that these lead to."""
    pending = [f"{DOCS}{file.src_uri}" for file in files if file.is_documentation_page()]
    pending += PROJECT_PAGES
    while pending:
        path = pending.pop()
        if not path.startswith(DOCS) and files.get_file_from_path(_in_site(path)) is None:
            files.append(_copy(path, config))
        if path.endswith((".md", ".ipynb")):
            targets = (_target(path, link) for _, link in _LINK.findall(_text(path)))
            pending += [
                target
                for target in targets
                if target and files.get_file_from_path(_in_site(target)) is None
            ]
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return a page with links that hold in the site, and fences that its extensions read."""
    here = page.file.src_uri
    path = here.removeprefix(COPIES) if here.startswith(COPIES) else DOCS + here
    path = path.removesuffix(".md") if path.endswith(".ipynb.md") else path
    if path == "docs/reference/api.md":
        markdown += "".join(f"\n\n::: pexeso.{name}" for name in _public_names())

    def lead(match: re.Match[str]) -> str:
        target = _target(path, match[2])
        if target is None:
            return match[0]
        _, hash_sign, anchor = match[2].partition("#")
        link = posixpath.relpath(_in_site(target), posixpath.dirname(here) or ".")
        return f"{match[1]}{link}{hash_sign}{anchor}"

    return _outside_code(lambda text: _LINK.sub(lead, text), markdown)


def _public_names() -> list[str]:
    return [name for name in pexeso.__all__ if name != "__version__"]


def _target(page: str, link: str) -> str | None:
    """Return the file of the project that a page's link leads to, both from the root."""
    file = unquote(link.partition("#")[0])
    if not file:
        return None
    target = posixpath.normpath(posixpath.join(posixpath.dirname(page), file))
    if not (ROOT / target).is_file():
        _LOG.warning("%s leads to '%s', which is no file of the project", page, link)
        return None
    return target


def _in_site(path: str) -> str:
    if path.startswith(DOCS):
        return path.removeprefix(DOCS)
    return COPIES + (f"{path}.md" if path.endswith(".ipynb") else path)


def _copy(path: str, config: MkDocsConfig) -> File:
    if path.endswith(".ipynb"):
        return File.generated(config, _in_site(path), content=_text(path))
    return File.generated(config, _in_site(path), abs_src_path=str(ROOT / path))


def _text(path: str) -> str:
    text = (ROOT / path).read_text(encoding="utf-8")
    return _notebook(json.loads(text)) if path.endswith(".ipynb") else text


def _notebook(notebook: dict) -> str:
    """Return a notebook as Markdown: its text, its code, and the outputs that it holds."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        parts += map(_output, cell["outputs"])
    return "\n\n".join(parts)


def _output(output: dict) -> str:
    data = output.get("data", {"text/plain": output.get("text", "")})
    if "text/html" in data:
        lines = "".join(data["text/html"]).splitlines()
        inside = "\n".join(line.strip() for line in lines if line.strip())
        return f'<div class="output">\n{inside}\n</div>'
    return f"```text\n{''.join(data['text/plain']).rstrip()}\n```"


def _outside_code(change, markdown: str) -> str:
    """Apply `change` outside code; write fences as pymdownx reads them, without `file=NAME`."""
    kept: list[str] = []

    def keep(text: str) -> str:
        kept.append(text)
        return f"\0{len(kept) - 1}\0"

    def fence(match: re.Match[str]) -> str:
        session = match[2] == "python" and match[3].startswith(">>>")
        return keep(f"{match[1]}{'pycon' if session else match[2]}\n{match[3]}{match[1]}")

    text = _SPAN.sub(lambda match: keep(match[0]), _FENCE.sub(fence, markdown))
    return re.sub(r"\0(\d+)\0", lambda match: kept[int(match[1])], change(text))
