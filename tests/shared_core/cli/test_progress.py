"""Progress goes to stderr: a bar on a terminal, few lines elsewhere."""

import io
import sys
from types import SimpleNamespace

import pytest

from shared_core.cli.progress import progress_shown


class Terminal(io.StringIO):
    def isatty(self):
        return True


def count_to(total, stages=("Reading",)):
    with progress_shown() as report:
        for stage in stages:
            for done in range(total + 1):
                report(SimpleNamespace(stage=stage, done=done, total=total))


@pytest.mark.parametrize("total", [0, 1, 7, 10, 5000])
def test_elsewhere_a_stage_takes_ten_lines_at_most_and_ends_with_all(capsys, total):
    count_to(total, ("Reading", "Assimilating"))
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert out == ""
    for stage in ("Reading", "Assimilating"):
        of_stage = [line for line in lines if line.startswith(stage)]
        assert len(of_stage) == min(total, 10)
        assert of_stage[-1:] == [f"{stage}: {total} of {total}"][: len(of_stage)]


def test_a_terminal_sees_a_bar_with_count_rate_and_time(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    count_to(40, ("Reading [bold]", "Assimilating"))
    shown = sys.stderr.getvalue()
    assert "Reading [bold]" in shown
    assert "40/40" in shown
    assert "/s" in shown
    assert "0:00:00" in shown
    assert capsys.readouterr().out == ""
