"""Pages that are written for GitHub, as they are on the site."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "site_pages.py"


@pytest.fixture(scope="module")
def site() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_pages", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("place", "link", "moved"),
    [
        ("index.md", "docs/concepts.md#heartbeats", "concepts.md#heartbeats"),
        ("index.md", "benchmarks/RESULTS.md", "benchmarks.md"),
        ("index.md", "LICENSE", "LICENSE"),
        ("benchmarks.md", "../README.md", "index.md"),
        ("changelog.md", "docs/security.md", "security.md"),
        ("sinks.md", "endless.md#spark", "endless.md#spark"),
        ("recipes/funnel.md", "../language.md", "../language.md"),
        ("decisions/0001.md", "../../CONTRIBUTING.md#the-laws", "../contributing.md#the-laws"),
        ("sinks.md", "#here", "#here"),
        ("sinks.md", "https://spark.apache.org/x.md", "https://spark.apache.org/x.md"),
    ],
)
def test_links_lead_to_the_same_pages(site: ModuleType, place: str, link: str, moved: str) -> None:
    assert site.for_the_site(f"[a]({link}), b", place) == f"[a]({moved}), b"


def test_blocks_get_titles_and_keep_their_text(site: ModuleType) -> None:
    written = "```sql file=a.sql\n[x](docs/a.md)\n```\n"
    assert site.for_the_site(written, "index.md") == '```sql title="a.sql"\n[x](docs/a.md)\n```\n'
    shell, plain = "```python\n>>> 1\n1\n```\n", "```python\nx = 1\n```\n"
    assert site.for_the_site(shell + plain, "index.md") == shell.replace("python", "pycon") + plain


def test_pipes_in_the_code_of_a_table_have_no_backslash(site: ModuleType) -> None:
    assert site.for_the_site(r"| `a \|\| <b` | `c` |", "index.md") == (
        "| <code>a &#124;&#124; &lt;b</code> | `c` |"
    )


def test_a_folder_has_the_pages_that_its_readme_lists(site: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "README.md").write_text("[b](b.md#x), [a](a.md), [b](b.md), [out](../c.md)")
    assert site.pages_of(tmp_path, "jobs/") == ["jobs/README.md", "jobs/b.md", "jobs/a.md"]
