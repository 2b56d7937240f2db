"""The shapes of LoCoMo, with invented conversations."""

import json
from datetime import datetime

import pytest

from shared_core.errors import FormatError, NotFoundError
from shared_core.formats import read_entries

SESSIONS = {
    "speaker_a": "Ida",
    "speaker_b": "Bo",
    "session_10_date_time": "12:05 pm on 1 March, 2024",
    "session_10": [{"speaker": "Bo", "dia_id": "D10:1", "text": "The shed is mended"}],
    "session_2_date_time": "12:48 am on 29 February, 2024",
    "session_2": [
        {"speaker": "Ida", "dia_id": "D2:1", "text": "Look", "img_url": ["u"], "blip_caption": "a wet shed"},
        {"speaker": "Bo", "dia_id": "D2:2", "text": "", "blip_caption": "a hammer"},
        {"speaker": "Ida", "dia_id": "D2:3", "text": ""},
        {
            "speaker": "Bo",
            "dia_id": "D2:4",
            "clean_text": "I will mend it",
            "query": "hammer",
            "re-download": True,
        },
    ],
    "session_3": None,
    "session_4": [],
    "session_11_date_time": "1:00 pm on 9 March, 2024",
    "session_2_summary": "Ida showed a shed.",
    "session_2_facts": {"Ida": [["Ida has a shed", "D2:1"]]},
    "events_session_2": {},
}
QUESTIONS = [
    {"question": "What leaks?", "answer": 7, "category": 3, "evidence": []},
    {"question": "What leaks?", "adversarial_answer": "the roof", "category": 5, "evidence": ["D", "D:2:1"]},
    {"question": "Who mends?", "answer": "Bo", "category": 1, "evidence": ["D2:1; D9:17", "D30:05 D2:4"]},
]
EXPECTED = [
    ("D2:1", "Ida", "2", datetime(2024, 2, 29, 0, 48), "Look", "a wet shed"),
    ("D2:2", "Bo", "2", datetime(2024, 2, 29, 0, 48), "", "a hammer"),
    ("D2:4", "Bo", "2", datetime(2024, 2, 29, 0, 48), "I will mend it", None),
    ("D10:1", "Bo", "10", datetime(2024, 3, 1, 12, 5), "The shed is mended", None),
]


def write(path, document, **options):
    path.write_text(json.dumps(document, **options), encoding="utf-8")
    return path


def sample(name, sessions=SESSIONS):
    return {"qa": QUESTIONS, "conversation": sessions, "event_summary": {}, "sample_id": name}


def fields(entries):
    return [(e.id, e.speaker, e.session, e.occurred_at, e.text, e.caption) for e in entries]


@pytest.mark.parametrize("format", ["auto", "locomo"])
@pytest.mark.parametrize(
    "document",
    [SESSIONS, SESSIONS | {"qa": QUESTIONS}, [SESSIONS], sample("talk-1"), [sample("talk-1")]],
    ids=["sessions", "with questions", "list of sessions", "sample", "list of samples"],
)
def test_both_shapes_are_read_with_their_defects(tmp_path, document, format):
    assert fields(read_entries(write(tmp_path / "a.json", document), format)) == EXPECTED


def test_a_conversation_is_chosen_by_its_sample_id(tmp_path):
    other = {"session_1": [{"speaker": "Cy", "dia_id": "D1:1", "text": "Other"}]}
    path = write(tmp_path / "many.json", [sample("talk-1"), sample("talk-2", other), other])
    assert fields(read_entries(path, conversation="talk-1")) == EXPECTED
    for name in ("talk-2", "3"):
        assert fields(read_entries(path, conversation=name)) == [("D1:1", "Cy", "1", None, "Other", None)]
    with pytest.raises(FormatError, match="choose one of the 3 conversations of the file: talk-1, talk-2, 3"):
        read_entries(path)
    with pytest.raises(NotFoundError, match="no conversation 'talk-9'; it has: talk-1, talk-2, 3"):
        read_entries(path, conversation="talk-9")


def test_a_single_conversation_without_an_id_is_named_by_its_file(tmp_path):
    path = write(tmp_path / "shed.json", SESSIONS)
    assert fields(read_entries(path, conversation="shed")) == EXPECTED
    with pytest.raises(NotFoundError, match="no conversation 'talk-1'; it has: shed"):
        read_entries(path, conversation="talk-1")


@pytest.mark.parametrize(
    ("change", "line_holding", "reason"),
    [
        ({"session_2": "soon"}, '"soon"', "talk-1, session_2: expected a list of turns"),
        ({"session_2": ["soon"]}, '"soon"', "talk-1, session_2, turn 1 is not an object"),
        (
            {"session_4": [SESSIONS["session_10"][0] | {"dia_id": "D4:1"}, {"dia_id": 4, "text": "x"}]},
            '"dia_id": 4,',
            "talk-1, session_4, turn 2: the id must be text",
        ),
        ({"session_4": [{"dia_id": "D4:1", "text": ["x"]}]}, '"D4:1"', "the text must be text"),
        ({"session_2_date_time": "noon"}, '"noon"', "'noon' is not a time such as '1:56 pm on 8 May, 2023'"),
        ({"session_2_date_time": 2024}, '_time": 2024', "2024 is not a time"),
        ({"session_2_date_time": "1:00 pm on 30 February, 2024"}, "30 February", "does not exist"),
        ({"session_2_date_time": "13:00 pm on 3 February, 2024"}, "13:00", "does not exist"),
        ({"session_2_date_time": "1:00 pm on 3 Marchy, 2024"}, "Marchy", "does not exist"),
        ({"session_2_date_time": "1:00 pm on 3 Ma, 2024"}, "3 Ma", "does not exist"),
    ],
)
def test_what_is_broken_is_named_with_its_line(tmp_path, change, line_holding, reason):
    path = write(tmp_path / "a.json", [sample("talk-1", SESSIONS | change)], indent=1)
    lines = path.read_text().split("\n")
    number = next(n for n, line in enumerate(lines, start=1) if line_holding in line)
    with pytest.raises(FormatError, match=reason) as caught:
        read_entries(path)
    named = int(str(caught.value).split("line ")[1].split(":")[0])
    # A turn is reported where it begins: at its brace, on the line before its first field.
    assert number - named in (0, 1)
    assert "nothing was read" in str(caught.value)


def test_a_repeated_turn_id_is_refused(tmp_path):
    turn = {"speaker": "Ida", "dia_id": "D1:1", "text": "Again"}
    with pytest.raises(FormatError, match="'D1:1' occurs a second time"):
        read_entries(write(tmp_path / "a.json", {"session_1": [turn, turn]}))


@pytest.mark.parametrize("document", [7, [7], [{}], {"conversation": 7}, []])
def test_other_documents_are_refused(tmp_path, document):
    with pytest.raises(FormatError):
        read_entries(write(tmp_path / "a.json", document), "locomo")
