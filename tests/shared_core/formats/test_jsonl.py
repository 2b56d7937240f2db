"""JSON Lines of entries."""

import pytest

from shared_core.errors import FormatError
from shared_core.formats import read_entries

GOOD = '{"text": "We painted the shed", "id": "t1", "speaker": "Ida", "occurred_at": "2024-05-08T13:56"}\n'


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("We painted the shed", "this is not JSON"),
        ('{"text": "a"} {"text": "b"}', "this is not JSON"),
        ('["a"]', "one JSON object a line, found a list"),
        ("null", "found null"),
        ('{"speaker": "Ida"}', "'text' is missing"),
        ('{"text": " "}', "the text is empty"),
        ('{"text": 7}', "the text must be text, not int"),
        ('{"text": "a", "id": 7}', "the id must be text, not int"),
        ('{"text": "a", "author": "Ida"}', "unknown fields 'author'"),
        ('{"text": "a", "occurred_at": "last Saturday"}', "not an ISO 8601 time"),
        ('{"text": "a", "metadata": []}', "metadata must be a JSON object"),
    ],
)
def test_one_bad_line_refuses_the_file_and_is_named(tmp_path, line, reason):
    path = tmp_path / "a.jsonl"
    path.write_text(f"{GOOD}\n{line}\n" + '{"text": "after"}\n')
    with pytest.raises(FormatError, match=rf"a\.jsonl, line 3: .*{reason}.*nothing was read from the file"):
        read_entries(path)


def test_a_caption_alone_and_line_separators_within_text_are_fine(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"caption": "a red kettle"}\n{"text": "one\u2028two\u0085three"}\n', encoding="utf-8")
    caption, separators = read_entries(path)
    assert (caption.text, caption.caption) == ("", "a red kettle")
    assert separators.text == "one\u2028two\u0085three"
