import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from igcd import cli
from igcd.errors import MAX_EXCERPT, IgcdError, excerpt
from igcd.memory.category_ledger import DiscovererError
from igcd.workspace.catalog import ConflictError

HUGE = "\x00\x1b[31m" * 10_000 + "end"


@given(st.text(), st.integers(min_value=3, max_value=40))
def test_an_excerpt_is_printable_and_short_whatever_comes(text, limit):
    shown = excerpt(text, limit=limit)
    assert shown.isprintable() and len(shown) <= limit
    assert excerpt(shown, limit=limit) == shown
    if text.isprintable() and len(text) <= limit:
        assert shown == text


def test_the_end_of_a_long_text_is_kept():
    assert excerpt("a" * 70_000 + "; choose another").endswith("; choose another")
    assert len(excerpt("a" * 70_000)) == MAX_EXCERPT


@pytest.mark.parametrize("kind", [IgcdError, ConflictError, DiscovererError])
def test_a_sentence_stays_one_line_under_300_characters(kind):
    error = kind(f"there is no category {HUGE}; choose another", details=["first", f"second {HUGE}"])
    assert str(error).isprintable() and len(str(error)) < 300
    assert str(error).startswith("there is no category \\x00") and str(error).endswith("end; choose another")
    assert error.details[0] == "first" and all(line.isprintable() and len(line) < 300 for line in error.details)
    again = copy.copy(error)  # made again from its arguments, as when it comes from another process
    assert (str(again), again.details) == (str(error), error.details)


def test_the_command_line_prints_the_sentence_and_the_details(monkeypatch, capsys):
    def fail():
        raise IgcdError(f"got {HUGE}; choose another", details=["one", "two"])

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    first, *rest = capsys.readouterr().err.splitlines()
    assert ended.value.code == 1
    assert first.startswith("igcd: got ") and first.isprintable() and len(first) < 300
    assert rest == ["  one", "  two"]


def test_a_file_that_cannot_be_used_is_named_in_a_short_sentence(monkeypatch, capsys):
    def fail():
        raise PermissionError(13, "Permission denied", f"/photos/{HUGE}")

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(SystemExit):
        cli.main()
    (line,) = capsys.readouterr().err.splitlines()
    assert line.isprintable() and len(line) < 300 and "Permission denied" in line


@pytest.mark.parametrize("arguments", [["x" * 70_000], ["ls", "x" * 70_000], ["init", "ws", "--size", "x" * 70_000]])
def test_an_endless_argument_is_not_repeated(monkeypatch, capsys, arguments):
    monkeypatch.setattr("sys.argv", ["igcd", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    (line,) = capsys.readouterr().err.splitlines()
    assert ended.value.code == 1
    assert len(line) < 300 and "at most 8,192 characters, got 70,000: 'xxx" in line
