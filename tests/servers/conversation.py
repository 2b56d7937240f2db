"""A conversation of 42 turns in four sessions, and questions about it."""

from __future__ import annotations

from datetime import datetime

from shared_core import MemoryEntry

_SESSIONS: list[tuple[str, datetime, list[tuple[str, str]]]] = [
    (
        "bicycle shop",
        datetime(2025, 2, 3, 18, 5),
        [
            ("Ilse", "I signed the lease for the bicycle shop on Mill Street this morning"),
            ("Rafi", "Congratulations! Is that the place where the old bakery used to be?"),
            ("Ilse", "Yes, the ovens are still in the back room, and nobody wants them"),
            ("Rafi", "My cousin Dario restores ovens, I will ask him"),
            ("Ilse", "The landlord lets me paint the shutters, I was thinking of dark green"),
            ("Rafi", "You will need a truing stand and at least two repair benches"),
            ("Ilse", "I found a second-hand stand in Bremen for eighty euros"),
            ("Rafi", "I can drive you there on Saturday, my van passed its inspection"),
            ("Ilse", "My father is worried, he says nobody repairs bicycles in winter"),
            ("Rafi", "Sell him on the lamps, everybody breaks their lights in November"),
            ("Ilse", "I hired a student named Wanda for two afternoons a week"),
        ],
    ),
    (
        "choir",
        datetime(2025, 3, 14, 20, 40),
        [
            ("Rafi", "I sang in the choir again after nine years, my voice cracked on the high notes"),
            ("Ilse", "Which piece are you rehearsing?"),
            ("Rafi", "A requiem by Fauré, the concert is in the harbour church in June"),
            ("Ilse", "I get seasick just looking at that church, it leans so much"),
            ("Rafi", "Our conductor fell off her horse and conducts with one arm"),
            ("Ilse", "Poor thing! Bring her some of my elderberry syrup"),
            ("Rafi", "She is allergic to elderberries, but she loves marzipan"),
            ("Ilse", "Then Wanda can bake something, she is good at almond cakes"),
            ("Rafi", "I also started to learn Portuguese, for the trip to Porto"),
            ("Ilse", "Did you book the night train or the flight?"),
            ("Rafi", "The train, I am afraid of flying since the storm over Madeira"),
        ],
    ),
    (
        "flood",
        datetime(2025, 4, 22, 7, 55),
        [
            ("Ilse", "The cellar of the shop is under water, a pipe burst during the night"),
            ("Rafi", "How many bicycles were down there?"),
            ("Ilse", "Eleven, and the box with all the carbon brake pads"),
            ("Rafi", "Does your insurance pay for burst pipes?"),
            ("Ilse", "Only if a plumber writes a report, mine is on holiday in Crete"),
            ("Rafi", "Dario knows a plumber, a woman called Nkechi with a yellow truck"),
            ("Ilse", "She came within the hour and pumped everything dry"),
            ("Rafi", "Tell me when you need someone to carry the frames upstairs"),
            ("Ilse", "Wanda has hung them from the ceiling like bats"),
            ("Rafi", "I lent you my dehumidifier last autumn, is it still at your place?"),
            ("Ilse", "It hums in the cellar, thank you, the walls are almost dry"),
        ],
    ),
    (
        "summer",
        datetime(2025, 6, 30, 19, 10),
        [
            ("Rafi", "The concert went well, two hundred people stood in the aisles"),
            ("Ilse", "I cried during the last movement, do not tell anybody"),
            ("Rafi", "I passed the Portuguese exam with one mistake"),
            ("Ilse", "The shop made its first profit in May, mostly with cargo bikes"),
            ("Rafi", "Is your father still worried?"),
            ("Ilse", "He stands at the counter every Friday and sells lamps"),
            ("Rafi", "Nkechi asked whether you would teach her to true a wheel"),
            ("Ilse", "Gladly, she may come on Tuesday evening after we close"),
            ("Rafi", "I leave for Porto on the ninth, can Wanda water my tomatoes?"),
        ],
    ),
]

TURNS = [
    MemoryEntry(text, f"{session}-{number}", speaker, session, time.replace(minute=(time.minute + number) % 60))
    for session, time, said in _SESSIONS
    for number, (speaker, text) in enumerate(said)
]

QUESTIONS = [
    "Where is Ilse's workshop?",
    "Who was hired to help out?",
    "What did the second-hand tool cost?",
    "Which music does Rafi perform?",
    "Why does Rafi not travel by plane?",
    "What must the conductor not eat or drink?",
    "What was damaged by the water?",
    "Who repaired the pipe?",
    "How does Ilse's father help today?",
    "Which language is Rafi learning, and why?",
    "Who looks after the plants in summer?",
    "What happened to the ovens of the bakery?",
]
