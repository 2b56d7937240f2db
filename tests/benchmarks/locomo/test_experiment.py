"""The run: what is asked, what is kept, and that an interrupted run ends as an undisturbed one."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.progress import Progress

from benchmarks.lines import read_lines
from benchmarks.locomo.__main__ import main, spread
from benchmarks.locomo.dataset import Conversation, load
from benchmarks.locomo.experiment import Finished, Plan, run
from benchmarks.locomo.results import Journal, Outcome
from benchmarks.locomo.systems import Cost, Entrant, Ranked, Report, Workplace
from shared_core import MemoryEntry
from tests.benchmarks.locomo.conftest import SAMPLES


class Backwards:
    """Gives the turns from the last to the first, and dies when it was told to."""

    reads = 0
    lives = 10_000

    def write(self, turns: Sequence[MemoryEntry], report: Report) -> Cost:
        self.ids = [str(turn.id) for turn in turns]
        report(len(turns))
        return Cost(2.0, 3, 4)

    def read(self, query: str, k: int) -> Ranked:
        if Backwards.lives == 0:
            raise KeyboardInterrupt
        Backwards.lives -= 1
        Backwards.reads += 1
        return Ranked(self.ids[::-1][:k], Cost(0.5, 1, 9))

    def close(self) -> None:
        pass


@pytest.fixture(autouse=True)
def _alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Backwards, "reads", 0)
    monkeypatch.setattr(Backwards, "lives", 10_000)


def entrant(name: str, **settings: object) -> Entrant:
    return Entrant(name, lambda _: Backwards(), lambda _: settings)


@pytest.fixture
def plan(tmp_path: Path, conversations: list[Conversation]) -> Plan:
    return Plan(conversations, [entrant("one"), entrant("two")], None, 0, tmp_path / "out")


def go(plan: Plan) -> Finished:
    with Progress(disable=True) as progress:
        return run(plan, Workplace(plan.out / "cache"), progress)


def test_every_question_with_evidence_is_asked_of_every_system(plan: Plan):
    finished = go(plan)
    asked = [row.question for row in finished.outcomes["one"]]
    assert asked == [f"conv-1/{place}" for place in (0, 1, 2, 3, 5, 6, 8)] + ["conv-2/0"]
    assert [row.question for row in finished.outcomes["two"]] == asked
    # Turns from the last: D2:3, D2:2, D2:1, D1:4, …
    assert finished.outcomes["one"][-2].ranks == {"D1:4": 4, "D2:2": 2}
    assert [(row.entries, row.cost) for row in finished.writings["one"]] == [(7, Cost(2.0, 3, 4)), (3, Cost(2.0, 3, 4))]
    assert plan.counts["questions_asked"] == 8
    assert plan.counts["questions_without_evidence"] == 2


def test_what_is_finished_is_not_asked_again(plan: Plan):
    finished = go(plan)
    assert Backwards.reads == 16
    assert go(plan) == finished
    assert Backwards.reads == 16


@pytest.mark.parametrize("lives", [0, 1, 6, 7, 8, 11, 15])
def test_an_interrupted_run_ends_with_the_same_files(plan: Plan, monkeypatch: pytest.MonkeyPatch, lives: int):
    undisturbed = go(plan)
    files = {name: (plan.out / name).read_bytes() for name in ("questions.jsonl", "writings.jsonl")}
    other = replace(plan, out=plan.out.with_name("other"))
    Backwards.reads, Backwards.lives = 0, lives
    with pytest.raises(KeyboardInterrupt):
        go(other)
    for name in files:
        path = other.out / name
        if path.is_file():
            path.write_bytes(path.read_bytes()[:-25])  # the last line is torn
    Backwards.lives = 10_000
    assert go(other) == undisturbed
    assert Backwards.reads == 16 + (lives > 0)  # only what was torn is asked again
    assert {name: (other.out / name).read_bytes() for name in files} == files


def test_another_setting_question_or_turn_is_asked_again(plan: Plan, file: Path):
    go(plan)
    reads = Backwards.reads
    go(replace(plan, entrants=[entrant("one", width=3), entrant("two")]))
    assert Backwards.reads == reads + 8
    samples = json.loads(json.dumps(SAMPLES))
    samples[0]["qa"][0]["question"] = "What else leaks?"
    samples[1]["conversation"]["session_1"][0]["text"] = "The elm fell."
    file.write_text(json.dumps(samples), encoding="utf-8")
    go(replace(plan, conversations=load([file])))
    # The changed question and the changed conversation's, by both; and the first system has its old setting again.
    assert Backwards.reads == reads + 8 + 8 + 2


def test_other_systems_and_questions_of_the_folder_are_kept(plan: Plan):
    go(plan)
    limited = replace(plan, entrants=plan.entrants[:1], limit=2)
    assert len(go(limited).outcomes["one"]) == 3
    assert limited.counts["questions_not_drawn"] == 5
    go(plan)
    assert Backwards.reads == 16


def test_rows_of_another_run_at_the_same_time_are_kept(tmp_path: Path):
    def outcome(system: str, question: str) -> Outcome:
        return Outcome(system, question, 1, {}, (), Cost(0), "print")

    mine, other = (Journal(tmp_path / "rows.jsonl", Outcome) for _ in range(2))
    mine.append(outcome("bm25", "1"))
    other.append(outcome("dense", "1"))
    mine.settle([outcome("bm25", "1")])
    other.append(outcome("dense", "2"))
    other.settle([outcome("dense", "1"), outcome("dense", "2")])
    rows = [(row["system"], row["question"]) for row in read_lines(tmp_path / "rows.jsonl")]
    assert rows == [("dense", "1"), ("dense", "2"), ("bm25", "1")]


def settled(folder: Path) -> dict[str, Any]:
    """All that the files say apart from times."""
    summary = json.loads((folder / "summary.json").read_text())
    for one in summary["systems"].values():
        for call in ("write", "read"):
            one[call] = {name: value for name, value in one[call].items() if "seconds" not in name}
    rows = [fields | {"cost": None} for fields in read_lines(folder / "questions.jsonl")]
    return {"summary": summary, "rows": rows}


def test_the_program_from_end_to_end(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    arguments = ["retrieval", "--data", str(file), "--systems", "bm25", "bm25-episode", "--cache", str(tmp_path / "c")]
    for folder in ("first", "second"):
        with pytest.raises(SystemExit) as ended:
            main([*arguments, "--out", str(tmp_path / folder)])
        assert ended.value.code == 0
        if folder == "first":
            lines = (tmp_path / "first" / "questions.jsonl").read_bytes().splitlines(keepends=True)
            (tmp_path / "second").mkdir()
            (tmp_path / "second" / "questions.jsonl").write_bytes(b"".join(lines[:5]) + lines[5][:40])
    first, second = tmp_path / "first", tmp_path / "second"
    assert settled(first) == settled(second)
    summary = json.loads((first / "summary.json").read_text())
    assert summary["questions"]["questions_asked"] == 8
    # The kayak, the tour, the museum (twice named), the loaves and the tree are found by their words.
    assert summary["systems"]["bm25"]["recall@5"]["4"] == 1
    assert set(summary["systems"]["bm25"]["recall@10"]) == {"1", "2", "3", "4", "5", "1-4", "all"}
    assert summary["systems"]["bm25-episode"]["paired"]["against"] == "bm25"
    wanted = {"questions.jsonl", "writings.jsonl", "summary.json", "table.md"}
    wanted |= {f"{name}.{kind}" for name in ("recall_by_turns", "recall_at_10_by_category") for kind in ("png", "svg")}
    assert {one.name for one in first.iterdir()} == wanted
    said = {word for sample in SAMPLES for word in re.findall(r"[a-z]{4,}", json.dumps(sample["qa"]).lower())}
    said |= {"kayak", "resin", "lighthouse", "weathercock", "odile", "ylva", "bram", "walnut"}
    said -= {"question", "answer", "evidence", "category", "adversarial"}
    for name in wanted - {f"{plot}.png" for plot in ("recall_by_turns", "recall_at_10_by_category")}:
        text = (first / name).read_text(encoding="utf-8").lower()
        found = {word for word in said if re.search(rf"\b{word}\b", text)}
        assert found <= {"what", "when", "they", "were", "this", "with"}, name


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--systems", "bm52"], "bm25, bm25-episode"),
        (["--systems", "scg:widht=3"], "widht"),
        (["--conversations", "conv-9"], "conv-1, conv-2"),
        (["--systems", "bm25", "--against", "ablations"], "one system"),
    ],
)
def test_a_wrong_argument_is_one_line(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
):
    with pytest.raises(SystemExit) as ended:
        main(["retrieval", "--data", str(file), "--out", str(tmp_path / "out"), *arguments])
    assert ended.value.code == 2
    assert message in " ".join(capsys.readouterr().out.split())
    assert not (tmp_path / "out").exists()


def test_several_values_follow_one_option():
    assert spread(["x", "--systems", "a", "b", "--limit", "3", "4", "--data", "f"]) == [
        *("x", "--systems", "a", "--systems", "b"),
        *("--limit", "3", "4", "--data", "f"),
    ]
