"""Kinds of faults that users met in other memories, retrievers and decoders, and the tests that we do not have them.

Each kind names its tests; a test that is renamed or removed has to be named anew here.
"""

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parent

FAULTS: dict[str, tuple[str, ...]] = {
    "1 deleting one user's memories deletes everyone's, concurrent writes double": (
        "shared_core/store/test_isolation.py::test_removing_one_leaves_every_other",
        "scg_langchain/test_isolation.py::test_deleting_one_users_memories_leaves_the_others",
        "shared_core/test_memory_changes.py::test_two_who_store_the_same_at_once_store_it_once",
        "reliability/test_processes.py::test_processes_that_write_at_the_same_time_lose_and_double_nothing",
    ),
    "2 one tenant's data written into another's through shared state": (
        "scg_langchain/test_isolation.py::test_hundreds_of_interleaved_store_calls_stay_in_their_namespace",
        "scg_langchain/test_isolation.py::test_many_namespaces_in_use_at_once_stay_correct",
        "reliability/test_tasks.py::test_hundreds_of_interleaved_tasks_never_mix_their_namespaces",
    ),
    "3 every session reads the memory of the first": (
        "scg_langchain/test_faults.py::test_no_session_reads_the_memory_of_the_first",
        "scg_llamaindex/test_memory.py::test_every_session_reads_its_own_memory_and_not_the_first_ones",
    ),
    "4 ranks taken for ids overwrite others, an index stale after an update": (
        "scg_langchain/test_faults.py::test_an_update_is_found_by_what_it_says_now_and_touches_no_other",
        "shared_core/test_memory_changes.py::test_an_update_replaces_what_was_said",
        "shared_core/recall/test_following.py::*",
    ),
    "5 recalled text stored again as new memory": (
        "scg_langchain/test_faults.py::test_what_was_recalled_is_never_stored_again",
        "scg_langchain/test_recalled_text_is_not_stored.py::*",
        "scg_llamaindex/test_memory.py::test_shared_messages_are_left_as_they_are_and_recalled_text_is_not_stored",
        "shared_core/test_memory.py::test_a_recall_writes_nothing",
    ),
    "6 a time zone taken for granted": (
        "reliability/test_times.py::test_a_naive_time_stays_naive_whatever_the_time_zone_of_the_machine",
        "shared_core/test_filters.py::*",
        "shared_core/answering/test_reading.py::test_a_note_says_what_its_relative_dates_mean",
        "shared_core/answering/test_dates.py::*",
    ),
    "7 a text over the model's limit fails the whole write": (
        "shared_core/test_hostile.py::test_a_long_entry_is_stored_whole_and_found_by_its_middle",
        "scg_langchain/test_faults.py::test_a_text_longer_than_the_models_window_is_stored_whole",
        "shared_core/answering/test_candidates.py::test_of_very_many_spans_with_one_beginning_no_more_are_scored",
    ),
    "8 pickle in the store runs code": (
        "reliability/test_supply.py::test_nothing_reads_a_pickle",
        "reliability/test_supply.py::test_weights_in_a_pickle_are_refused_and_run_nothing",
    ),
    "9 a file cut short by a crash never opens again": (
        "reliability/test_kills.py::test_a_kill_at_any_moment_loses_nothing_acknowledged",
        "reliability/test_kills.py::test_a_log_cut_short_by_a_power_cut_keeps_what_was_acknowledged_before_it",
        "shared_core/upkeep/test_upkeep.py::test_of_a_damaged_file_whatever_can_be_read_is_carried_over",
    ),
    "10 database is locked under two processes": (
        "reliability/test_processes.py::test_processes_that_write_at_the_same_time_lose_and_double_nothing",
        "reliability/test_processes.py::test_a_writer_waits_as_long_as_others_get_on",
        "shared_core/store/test_concurrency.py::test_several_processes_write_one_file",
    ),
    "11 async that blocks the loop, a thread for each call": (
        "shared_core/test_memory_async.py::test_the_event_loop_runs_while_a_recall_decodes",
        "shared_core/test_memory_async.py::test_the_event_loop_runs_while_entries_are_remembered",
        "shared_core/test_memory_async.py::test_recalls_at_the_same_time_share_decodes_and_threads",
        "scg_langchain/test_faults.py::test_async_never_blocks_the_event_loop_nor_takes_a_thread_for_each_call",
        "scg_llamaindex/test_memory.py::test_async_never_blocks_the_event_loop_and_makes_no_thread_per_call",
    ),
    "12 division by zero when nothing was extracted, nothing found after a restart": (
        "shared_core/test_hostile.py::test_entries_without_a_usable_word_do_no_harm",
        "shared_core/test_memory_changes.py::test_a_memory_is_the_same_after_opening_it_again",
        "scg_langchain/test_faults.py::test_texts_that_say_nothing_break_nothing",
    ),
    "13 writing systems invisible to search": (
        "shared_core/test_hostile.py::test_an_odd_text_is_kept_as_it_is_and_recalled",
        "scg_langchain/test_faults.py::test_no_writing_system_is_invisible",
    ),
    "14 deleted text lives on, what others still say goes": (
        "shared_core/test_erasure.py::test_no_byte_of_200_forgotten_strings_is_left_in_any_file",
        "shared_core/store/test_erasure.py::test_nothing_removed_stays_in_the_files",
        "shared_core/store/test_life.py::*",
        "shared_core/test_memory_changes.py::test_forgotten_is_gone_from_results_schema_graph_and_file",
    ),
    "15 the same again deletes the original, small models echo the format": (
        "scg_langchain/test_faults.py::test_the_same_again_deletes_and_doubles_nothing",
        "shared_core/test_memory_changes.py::test_a_repetition_is_left_out_when_asked",
        "shared_core/evolution/test_accommodation.py::*",
    ),
    "21 an empty or all-impossible row crashes or drops the constraint": (
        "shared_core/decoding/test_processor.py::test_an_empty_schema_is_refused",
        "shared_core/decoding/test_processor.py::test_tokens_outside_the_schema_have_no_probability",
        "shared_core/decoding/test_processor.py::test_scores_that_were_removed_before_are_still_a_choice",
    ),
    "22 at a dead end every token is allowed": (
        "shared_core/decoding/test_processor.py::test_what_may_follow_leads_to_keys_only_and_to_every_key",
        "shared_core/decoding/test_processor.py::test_anything_else_is_no_key",
        "reliability/test_fuzz.py::test_a_trie_holds_its_keys_whatever_they_are",
    ),
    "23 fewer keys than beams gives duplicates": (
        "shared_core/decoding/test_processor.py::test_more_beams_than_keys",
        "shared_core/decoding/test_decoder.py::*",
        "shared_core/decoding/test_search.py::test_no_key_outside_the_schema_and_none_twice",
    ),
    "24 the model's own generation settings remove valid tokens": (
        "shared_core/decoding/test_processor.py::test_the_settings_of_the_model_itself_do_not_matter",
    ),
    "25 a tokenisation that cannot be reached": (
        "shared_core/decoding/test_decoder.py::test_keys_read_back_as_they_were",
        "shared_core/decoding/test_decoder.py::test_a_key_is_spelled_so_that_it_reads_back_or_not_at_all",
    ),
    "26 half an hour a thousand queries, gigabytes for the trie": (
        "reliability/test_supply.py::test_a_trie_of_many_keys_takes_few_bytes",
    ),
    "27 a key that was cut is returned as a result": (
        "shared_core/decoding/test_processor.py::test_a_key_that_was_cut_is_no_key",
        "shared_core/decoding/test_processor.py::test_generation_that_is_cut_gives_no_other_key",
    ),
    "28 state shared between requests in a logits processor": (
        "shared_core/decoding/test_processor.py::test_one_processor_serves_prompts_of_a_batch_at_once",
    ),
    "29 a short key loses its place to longer ones": (
        "shared_core/decoding/test_search.py::test_a_short_key_keeps_its_place_beside_longer_ones",
    ),
}


def _tests_in(file: Path) -> set[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }


@pytest.mark.parametrize("kind", FAULTS)
def test_each_kind_of_fault_has_its_tests(kind: str) -> None:
    for named in FAULTS[kind]:
        file, test = named.split("::")
        assert (TESTS / file).is_file(), named
        found = _tests_in(TESTS / file)
        assert test in found if test != "*" else "TestCase" in (TESTS / file).read_text() or found, named


def test_no_numbered_kind_is_left_out() -> None:
    assert [int(kind.split()[0]) for kind in FAULTS] == [*range(1, 16), *range(21, 30)]
