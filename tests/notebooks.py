"""Notebooks that run from top to bottom, and what their cells put out."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient


def run_notebook(path: Path, folder: Path) -> list[Any]:
    """The code cells of a notebook, with what they put out.

    Args:
        path: the notebook.
        folder: for what the kernel keeps.
    """
    notebook = nbformat.reads(path.read_text(), as_version=4)  # type: ignore[no-untyped-call]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IPYTHONDIR", str(folder))
        NotebookClient(notebook, timeout=120).execute()
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def after(cells: list[Any], beginning: str) -> Any:
    """The last output of the last cell whose text begins so."""
    return [cell for cell in cells if cell.source.startswith(beginning)][-1].outputs[-1]


def table_of(output: Any) -> list[list[str]]:
    """The cells of an output's table, row by row."""
    rows = re.findall("<tr.*?>(.*?)</tr>", output["data"]["text/html"], re.DOTALL)
    return [re.findall("<t[hd]>(.*?)</t[hd]>", row) for row in rows]


def chart_of(output: Any) -> dict[str, Any]:
    """The specification of an output's chart."""
    html = output["data"]["text/html"]
    specification, _ = json.JSONDecoder().raw_decode(html, html.index("})({") + 3)
    assert isinstance(specification, dict)
    return specification


def has_no_outputs(path: Path) -> bool:
    """Whether a notebook is stored without what its cells put out."""
    cells = json.loads(path.read_text())["cells"]
    return not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)
