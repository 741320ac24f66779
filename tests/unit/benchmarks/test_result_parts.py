"""RESULTS.md is written by two commands, each its own part."""

from pathlib import Path

from results import Section, write_part


def test_a_part_is_added_and_replaced_and_others_stay(tmp_path: Path) -> None:
    path = tmp_path / "RESULTS.md"
    path.write_text("# First\n\nold\n\n## Rates\n\n| a |\n")
    write_part("Second", "two\n", path)
    assert path.read_text() == "# First\n\nold\n\n## Rates\n\n| a |\n\n# Second\n\ntwo\n"
    write_part("First", "new", path)
    assert path.read_text() == "# First\n\nnew\n\n# Second\n\ntwo\n"


def test_a_part_makes_the_file(tmp_path: Path) -> None:
    write_part("First", "one", tmp_path / "new.md")
    assert (tmp_path / "new.md").read_text() == "# First\n\none\n"


def test_a_section_is_a_table_below_a_text() -> None:
    section = Section("Rates", ("query", "rate"), (("q0", "8.0"),), "In millions.")
    assert str(section) == "## Rates\n\nIn millions.\n\n| query | rate |\n| --- | --- |\n| q0 | 8.0 |"


def test_a_cell_stays_in_its_line_and_column() -> None:
    section = Section("Rates", ("query", "rate"), (("q0", "failed: a | b\nc"),))
    assert str(section).endswith("\n| q0 | failed: a \\| b c |")
