"""Whether a request asks for an action with each of several things."""

import pytest

from agent.text.quantifiers import asks_for_each


@pytest.mark.parametrize(
    ("request_text", "action"),
    [
        ("Raise the price of every item in the shop by 10 EUR and list the new prices.", "set price boiler"),
        ("Book Elm for dana for each of the hours from 8 to 17, and tell me the first.", "book room Elm dana"),
        ('Read every open ticket, add the comment "checked" to each of them.', "add comment checked T-1"),
        ("Stäng alla ärenden om skrivaren", "update ticket stäng ärende T-1"),
        ("Schließe beide Tickets von Ben", "close ticket T-1"),
        ("Assign T-2 and T-5 to dana", "update ticket T-2 dana"),
        ("Lösche beide Räume", "delete room lösche Räume"),
        ("Chiudi ogni ticket", "close ticket"),
        ("Ferme tous les tickets de Ben", "close tickets"),
    ],
)
def test_an_action_with_each_of_several_things(request_text: str, action: str) -> None:
    assert asks_for_each(request_text, action)


@pytest.mark.parametrize(
    ("request_text", "action"),
    [
        ("Read every open ticket and send a summary to ann", "send message ann"),
        ("Close ticket T-6", "close ticket T-6"),
        ("Lies alle Akten, und schicke Ann eine Nachricht", "Nachricht Ann"),
        ("Assign T-2 to dana", "update ticket T-2 dana"),
        ("Add SKU-20 to order A-7", "add SKU-20 A-7"),
        ("Close ticket T-2, it is a duplicate of T-5", "close ticket T-2"),
        ("Copy the comment of T-4 to T-9", "copy comment T-4"),
        ("Replace SKU-20 by SKU-21 in order A-7", "replace SKU-20"),
        ("Book an all-day meeting with Ben", "book meeting Ben"),
        ("Var god boka Elm", "boka Elm"),
        ("Close all", "order boiler"),
        ("", "close ticket"),
    ],
)
def test_an_action_with_one_thing(request_text: str, action: str) -> None:
    assert not asks_for_each(request_text, action)
