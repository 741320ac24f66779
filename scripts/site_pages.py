"""What MkDocs does besides to make a site of pages that are written to be read on GitHub.

The pages at the root of the repository become pages of the site, and links between them and `docs/` are
rewritten. A folder in the navigation is filled with the pages that its README.md lists. The opening line of a
fenced block says what `scripts/check_docs.py` does with it; here it becomes a title and a language.
"""

from __future__ import annotations

import posixpath
import re
from html import escape
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "LICENSE": "LICENSE",
    "benchmarks/RESULTS.md": "benchmarks.md",
    "examples/first_hour.ipynb": "first_hour.ipynb",
    "examples/series.ipynb": "series.ipynb",
}
"""Where on the site the files outside of `docs/` are."""

FENCED = re.compile(r"^(`{3,}).*?^\1[ \t]*$", re.MULTILINE | re.DOTALL)
PIPE_IN_CODE = re.compile(r"`([^`\n]*\\\|[^`\n]*)`")
"""GitHub shows `\\|` in a table's code as `|`; Python-Markdown shows the backslash as well."""
LINK = re.compile(r"(?<=\]\()(?![a-z]+://|#)([^)#\s]+)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Fill the folders of the navigation."""
    for item in config.nav or []:
        for title, place in item.items():
            if place.endswith("/"):
                item[title] = pages_of(Path(config.docs_dir), place)
    return config


def pages_of(docs: Path, folder: str) -> list[str]:
    """A folder's README.md and the pages beside it that it links to, in that order.

    Args:
        docs: the folder of all pages.
        folder: below it, with a `/` at the end.
    """
    linked = LINK.findall((docs / folder / "README.md").read_text())
    beside = [name for name in linked if name.endswith(".md") and "/" not in name]
    return [folder + name for name in dict.fromkeys(["README.md", *beside])]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from outside of `docs/`."""
    for source, place in PAGES.items():
        files.append(File.generated(config, place, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn a page as GitHub shows it into one for the site."""
    return for_the_site(markdown, page.file.src_uri)


def for_the_site(markdown: str, place: str) -> str:
    """A page with links, titles and languages as the site wants them.

    Args:
        markdown: the page as it is in the repository.
        place: its path on the site.
    """
    source = next((source for source, page in PAGES.items() if page == place), f"docs/{place}")
    made, end = [], 0
    for fence in FENCED.finditer(markdown):
        made += [with_links(markdown[end : fence.start()], source, place), with_title(fence[0])]
        end = fence.end()
    return "".join([*made, with_links(markdown[end:], source, place)])


def with_links(text: str, source: str, place: str) -> str:
    """A text with its links leading to pages of the site, and with the `|` in a table's code as such.

    Args:
        text: without fenced blocks.
        source: the path of its page in the repository.
        place: that on the site.
    """

    def moved(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link[1]))
        on_site = PAGES.get(target) or posixpath.relpath(target, "docs")
        return posixpath.relpath(on_site, posixpath.dirname(place))

    return PIPE_IN_CODE.sub(_code, LINK.sub(moved, text))


def _code(code: re.Match[str]) -> str:
    shown = escape(code[1]).replace(r"\|", "&#124;")
    return f"<code>{shown}</code>"


def with_title(fence: str) -> str:
    """A fenced block with the name of the file that it is written to as its title, and `>>>` as such."""
    named = re.sub(r"\A(`+\w*) file=(\S+)", r'\1 title="\2"', fence)
    return re.sub(r"\A(`+)python(?=\n>>> )", r"\1pycon", named)
