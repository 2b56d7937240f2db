"""The command from end to end, on tiny random models of two architectures."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from benchmarks.locomo.__main__ import main
from benchmarks.locomo.answers import answering
from benchmarks.locomo.answers import command as answers_command
from benchmarks.locomo.answers.run import Plan
from benchmarks.locomo.answers.systems import SWEEPS
from benchmarks.locomo.answers.writer import Writer
from benchmarks.locomo.dataset import load
from benchmarks.locomo.systems.settings import parse_config
from shared_core import SCGConfig
from tests.benchmarks.locomo.conftest import SAMPLES

SYSTEMS = ["nothing", "readagent", "bm25", "oracle"]


@pytest.fixture(scope="module")
def folders(tiny, tokenizer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Models as they lie on a disk."""
    found = {}
    for kind in ("llama", "gpt2"):
        folder = tmp_path_factory.mktemp(kind)
        tiny(kind)._model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        found[kind] = str(folder)
    return found


def command(file: Path, out: Path, model: str, systems: Sequence[str], against: str = "bm25") -> int:
    arguments = ["answers", "--data", str(file), "--out", str(out), "--model", model, "--against", against]
    drawn = ["--questions-per-category", "1"]
    with pytest.raises(SystemExit) as ended:
        main([*arguments, *drawn, "--cache", str(out.parent / "cache"), "--systems", *systems])
    return int(ended.value.code or 0)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model of random weights never ends an answer by itself."""
    monkeypatch.setattr(answering, "_FREE_TOKENS", 3)


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Does away with what draws: plots take longer than all the rest."""
    return lambda: monkeypatch.setitem(sys.modules, "benchmarks.locomo.answers.plots", None)


def settled(folder: Path) -> str:
    """All that the summary says apart from times."""
    return re.sub(r'"seconds": [^,}\n]*', "", (folder / "summary.json").read_text())


def test_an_interrupted_run_ends_as_an_undisturbed_one(
    file: Path, tmp_path: Path, folders, undrawn, capsys: pytest.CaptureFixture[str]
):
    assert command(file, tmp_path / "first", folders["llama"], SYSTEMS) == 0
    lines = (tmp_path / "first" / "answers.jsonl").read_bytes().splitlines(keepends=True)
    assert len(lines) == len(SYSTEMS) * 6 * 2  # six questions are drawn; two ways to answer
    undrawn()
    (tmp_path / "second").mkdir()
    (tmp_path / "second" / "answers.jsonl").write_bytes(b"".join(lines[:21]) + lines[21][:40])
    capsys.readouterr()
    assert command(file, tmp_path / "second", folders["llama"], SYSTEMS) == 0
    told = re.findall(r"(\w+), conv-\d: answering (\d+) questions", capsys.readouterr().out)
    assert "nothing" not in dict(told)
    assert sum(int(count) for _, count in told) == len(SYSTEMS) * 6 - 10
    assert settled(tmp_path / "second") == settled(tmp_path / "first")
    summary = json.loads((tmp_path / "first" / "summary.json").read_text())
    oracle, nothing = summary["systems"]["oracle"], summary["systems"]["nothing"]
    assert oracle["coverage@200"]["4"] > nothing["coverage@200"]["4"] == 0
    assert oracle["grounded"]["answer"]["calls"] == 1
    assert set(oracle["grounded"]["amem_f1"]) == {"1", "2", "3", "4", "5", "1-4", "paper"}
    names = {"answers.jsonl", "writings.jsonl", "summary.json", "table.md"}
    plots = {f"{score}_{mode}" for score in ("locomo_f1", "amem_f1") for mode in ("free", "grounded")} | {"coverage"}
    names |= {f"{plot}.{ending}" for plot in plots for ending in ("png", "svg")}
    assert {one.name for one in (tmp_path / "first").iterdir()} == names
    # No text of the data set is in the results, nor what was answered.
    for name in ("answers.jsonl", "writings.jsonl", "summary.json", "table.md"):
        text = (tmp_path / "first" / name).read_text().lower()
        assert not re.search(r"kayak|resin|lighthouse|odile|ylva|bram|walnut", text)


def test_a_model_of_another_architecture_answers(tmp_path: Path, folders, undrawn):
    undrawn()
    file = tmp_path / "short.json"
    file.write_text(json.dumps(SAMPLES[1:]))
    assert command(file, tmp_path / "out", folders["gpt2"], ["nothing", "readagent", "oracle"], "oracle") == 0
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    oracle, nothing = summary["systems"]["oracle"], summary["systems"]["nothing"]
    assert (oracle["coverage@200"]["4"], nothing["coverage@200"]["4"]) == (1, 0)
    assert nothing["grounded"]["amem_f1"]["4"] == 0  # without notes there is nothing but a refusal
    assert oracle["free"]["answer"]["read"] > nothing["free"]["answer"]["read"] == 0
    assert summary["systems"]["readagent"]["write_a_turn"]["calls"] > 0


def test_a_small_window_is_trimmed_and_counted(tmp_path: Path, folders, undrawn):
    undrawn()
    samples = json.loads(json.dumps(SAMPLES[1:]))
    samples[0]["conversation"]["session_1"][0]["text"] = "The walnut tree fell on the barn. " * 60
    file = tmp_path / "long.json"
    file.write_text(json.dumps(samples))
    assert command(file, tmp_path / "out", folders["llama"], ["nothing", "full"], "full") == 0
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["systems"]["full"]["questions_trimmed"] == 1
    assert summary["systems"]["nothing"]["questions_trimmed"] == 0


def further(name: str, file: Path, out: Path, model: str) -> dict[str, dict]:
    """The systems of what a further command says."""
    arguments = [name, "--data", str(file), "--out", str(out), "--model", model, "--questions-per-category", "1"]
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--conversations", "conv-2", "--cache", str(out.parent / "cache")])
    assert not ended.value.code
    return json.loads((out / name / "summary.json").read_text())["systems"]


def test_ablation_and_sweep_go_on_from_the_answers(
    file: Path, tmp_path: Path, folders, undrawn, monkeypatch: pytest.MonkeyPatch
):
    out = tmp_path / "out"
    monkeypatch.setattr(answers_command, "ABLATION", ("scg:width=3", "unconstrained:scg:width=3", "nothing"))
    sweeps = {"turns": {k: f"scg:width=3,k={k}" for k in (1, 2)}}
    monkeypatch.setattr(answers_command, "SWEEPS", sweeps)
    swept = further("sweep", file, out, folders["llama"])
    assert {one.name for one in (out / "sweep").iterdir()} == {"summary.json", "table.md", "turns.png", "turns.svg"}
    read = [swept[name]["grounded"]["answer"]["read"] for name in sweeps["turns"].values()]
    assert 0 < read[0] < read[1]
    undrawn()
    lines = (out / "answers.jsonl").read_text().splitlines()
    ablated = further("ablation", file, out, folders["llama"])
    assert set(ablated) == {"scg:width=3", "unconstrained:scg:width=3", "nothing"}
    assert set(lines) < set((out / "answers.jsonl").read_text().splitlines())
    monkeypatch.setattr(answering.Answerer, "answer", None)  # all of it is there
    assert further("ablation", file, out, folders["llama"]) == ablated


def test_sweeps_vary_what_they_say():
    """Also where a point is a memory as it comes, so that what was answered for it counts."""
    settings = {"turns": "k", "concepts": "concept_budget", "hops": "hops", "hops, as published": "hops"}
    assert settings.keys() == SWEEPS.keys()
    for varied, points in SWEEPS.items():
        for at, name in points.items():
            base = SCGConfig.paper() if name.startswith("scg-paper") else SCGConfig()
            assert parse_config(name) == base.replace(**{settings[varied]: at})


def test_what_was_written_is_kept(tiny, tmp_path: Path):
    writer = Writer(tiny("llama"), tmp_path / "kept.jsonl")
    prompts = ["the kayak", "a longer prompt about the fog", "the kayak"]
    first = writer.complete("Write.\n", prompts, 5)
    assert first[0] == first[2]
    assert (writer.spent.calls, writer.spent.trimmed) == (3, 0)
    again = Writer(tiny("llama"), tmp_path / "kept.jsonl")
    again._write = None  # type: ignore[assignment,method-assign]  # nothing is written anew
    assert again.complete("Write.\n", prompts, 5) == first
    assert again.spent == writer.spent
    assert again.complete("Write.\n", prompts[::-1], 5) == first[::-1]


def test_a_prompt_over_the_window_loses_its_beginning_which_is_counted(tiny, tmp_path: Path):
    writer = Writer(tiny("llama"), tmp_path / "kept.jsonl")
    assert len(writer.complete("Write. " * 500, ["the kayak leaks " * 500], 5)) == 1
    assert writer.spent.trimmed > 500


def test_questions_are_drawn_by_category(file: Path, tmp_path: Path):
    [first, _] = load([file])
    plans = [Plan([first], [], count, 0, tmp_path) for count in (1, 2, None)]
    one, two, all_ = ([question.id for question in plan.questions(first)] for plan in plans)
    assert set(one) <= set(two) <= set(all_)
    assert sorted(question.category for question in plans[0].questions(first)) == [1, 2, 3, 4, 5]
    assert len(all_) == 7


def test_a_wrong_argument_is_one_line(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    for system, message in (
        ("amen", "amem"),
        ("ablations", "group"),
        ("scg:k=x", "k must be a whole number, not 'x'$"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(["answers", "--data", str(file), "--out", str(tmp_path / "out"), "--systems", system])
        assert ended.value.code == 2
        assert re.search(message, " ".join(capsys.readouterr().out.split()))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["answers", "ablation", "sweep", "retrieval"])
@pytest.mark.parametrize("option", ["--out", "--cache"])
def test_a_folder_that_takes_no_files_is_one_line(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, option: str
):
    folders = {"--out": str(tmp_path / "out"), "--cache": str(tmp_path / "cache")} | {option: str(file)}
    with pytest.raises(SystemExit) as ended:
        main([command, "--data", str(file), *(part for pair in folders.items() for part in pair)])
    assert ended.value.code == 2
    said = capsys.readouterr().out.replace("\n", "")
    assert said.startswith("error:")
    assert "nothing can be written there" in said.replace("  ", " ")
