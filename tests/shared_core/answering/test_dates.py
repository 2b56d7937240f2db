"""What expressions of time mean, beside the calendar."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core.answering.dates import explicit_dates, relative_dates, write_date

SAID = date(2023, 5, 8)  # a Monday


def meanings(text: str, said: date = SAID) -> list[tuple[str, str]]:
    return [(text[one.start : one.end], one.meaning) for one in relative_dates(text, said)]


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("I ran yesterday!", "7 May 2023"),
        ("The day before yesterday it rained", "6 May 2023"),
        ("It rained day before yesterday", "6 May 2023"),
        ("See you tomorrow", "9 May 2023"),
        ("See you the day after tomorrow", "10 May 2023"),
        ("We met this morning", "8 May 2023"),
        ("That was two days ago", "6 May 2023"),
        ("about a year ago", "2022"),
        ("10 years ago", "2013"),
        ("twenty-five years ago", "1998"),
        ("thirty two days ago", "6 April 2023"),
        ("seventy years ago", "1953"),
        ("1.5 years ago", "1.5 years before 8 May 2023"),
        ("1,000 days ago", "1,000 days before 8 May 2023"),
        ("3-4 years ago", "3-4 years before 8 May 2023"),
        ("half a year ago", "half a year before 8 May 2023"),
        ("three months ago", "February 2023"),
        ("a few days ago", "few days before 8 May 2023"),
        ("a couple of weeks ago", "a couple of weeks before 8 May 2023"),
        ("a week ago or so", "the week before 8 May 2023"),
        ("one week ago", "the week before 8 May 2023"),
        ("last week", "the week before 8 May 2023"),
        ("this past weekend", "the weekend before 8 May 2023"),
        ("this week", "the week of 8 May 2023"),
        ("next month", "June 2023"),
        ("Last Tues", "the Tuesday before 8 May 2023"),
        ("on Sunday", "the Sunday before 8 May 2023"),
        ("I'm so glad we met on Friday", "the Friday before 8 May 2023"),
        ("On Sunday I was late. We are leaving soon.", "the Sunday before 8 May 2023"),
        ("On Friday, Anna's painting hung in the hall", "the Friday before 8 May 2023"),
        ("My train to Lyon leaves at seven on Friday.", "the Friday after 8 May 2023"),
        ("I'll see you on Sunday", "the Sunday after 8 May 2023"),
        ("On Sunday I am going to a fair", "the Sunday after 8 May 2023"),
        ("The shop opens in three days", "11 May 2023"),
        ("We are flying to Lyon in about two weeks", "two weeks after 8 May 2023"),
        ("I will be back in a month!", "June 2023"),
        ("she's moving in a few years", "few years after 8 May 2023"),
        ("next Friday", "the Friday after 8 May 2023"),
        ("last summer", "summer 2022"),
        ("last July", "July 2022"),
        ("this March", "March 2023"),
    ],
)
def test_relative_to_the_day_it_was_said(text: str, meaning: str):
    assert [found for _, found in meanings(text)] == [meaning]


@pytest.mark.parametrize(
    "text",
    [
        *("this may be it", "soon", "the lasting weekend", "yesterday-ish", "a day", "ago", "two weeks"),
        *("it was not built in a day", "we have not talked in a few days", "I will call in a day or two"),
    ],
)
def test_what_names_no_time(text: str):
    assert meanings(text) == []


def test_at_the_ends_of_the_calendar():
    assert meanings("yesterday or 3 years ago", date(1, 1, 1)) == []
    assert meanings("last winter or last May", date(1, 1, 1)) == []
    assert meanings("tomorrow", date(9999, 12, 31)) == []
    assert meanings("next winter or next May", date(9999, 12, 31)) == []
    assert meanings("last month", date(2024, 3, 31)) == [("last month", "February 2024")]


@given(st.dates(date(1900, 1, 1), date(2100, 1, 1)), st.integers(0, 400))
def test_days_ago_follow_the_calendar(said: date, days: int):
    assert meanings(f"{days} days ago", said) == [(f"{days} days ago", write_date(said - timedelta(days=days)))]


def test_dates_that_a_text_names_itself():
    text = "Since 2016, on 3 May, July 4th, 2021, the 2nd of June 2020, May 2022; may I? room 19999"
    text += "; the week before 25 May, day after July 4th; the year before; after 2017"
    found = ["2016", "3 May", "July 4th, 2021", "2nd of June 2020", "May 2022"]
    found += ["the week before 25 May", "day after July 4th", "2017"]
    assert [one.meaning for one in explicit_dates(text)] == found
    assert all(text[one.start : one.end] == one.meaning for one in explicit_dates(text))
