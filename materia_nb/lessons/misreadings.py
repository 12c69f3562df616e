"""The questions of the lessons: the form of an answer, and what a wrong one shows to have been misread.

It is here and not in the notebooks, where it would tell the answers to whoever looks at the check cell.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

ANY: Final = "*"
"""Any other wrong answer."""


class Ask(NamedTuple):
    """What is known of a question.

    Attributes:
        form: what an answer looks like, in words.
        explained: what a wrong answer, or one that follows from the learner's own numbers, shows to have been misread.
        varies: whether the right answer follows from the learner's own numbers, so that it can be marked.
    """

    form: str
    explained: Mapping[Any, str] = {}
    varies: bool = True


NUMBER: Final = "a whole number"
SOCKET: Final = "a socket in quotes, such as 'Socket-1'"
PLACE: Final = "a socket or the end, in quotes, such as 'Socket-1' or 'end'"
STOPS: Final = "a socket, 'end' or 'stop', in quotes"
ROUTE: Final = "a list of sockets, such as ['Socket-1', 'Socket-3']"
TITLE: Final = "the title of an item, in quotes"
ENDS: Final = "'complete' or 'failed', in quotes"
TRUTH: Final = "True or False"
VERDICTS: Final = "a list of verdicts, such as [True, False]"


def fold(value: object) -> object:
    """Return a value as answers are compared: upper and lower case do not count, nor do spaces around a word."""
    if isinstance(value, str):
        return value.strip().casefold()
    return [fold(one) for one in value] if isinstance(value, list | tuple) else value


def folded(explained: Mapping[Any, str], numbers: object) -> Mapping[str, str]:
    """Return explanations by the wrong answers as texts, those that follow from numbers worked out."""
    return {str(fold(key(numbers) if callable(key) else key)): words for key, words in explained.items()}


def _sorting(n: Any, *, ask_first: bool = True) -> list[str]:
    """The route of lesson 1; or that of whoever takes the last edge of Ask, whatever is said."""
    route = ["Socket-1"] if n.sort else ["Socket-1", "Socket-2"]
    if n.sort or (n.ask and ask_first):
        route.append("Socket-3")
        return route if n.file else [*route, "Socket-4"]
    return [*route, "Socket-4"]


QUESTIONS: Final[Mapping[str, Mapping[str, Ask]]] = {
    "01-edges": {
        "whole_route": Ask(
            ROUTE,
            {
                (
                    lambda n: _sorting(n, ask_first=False)
                ): "Edges are looked at in order: the one for always is "
                "reached only if none before it matched.",
                (lambda n: [*_sorting(n), "Socket-4"]): "Does the edge of Socket-3 match what is said there?",
                ANY: "Begin at the entry, and take the first edge that matches at each socket.",
            },
        ),
        "after_the_last": Ask(
            PLACE,
            {
                "stop": "Nothing failed and nobody is asked: where no edge matches, or there is none, the cast ends.",
                ANY: "Does any edge of the last socket match? If not, there is only one thing that a cast can do.",
            },
            varies=False,
        ),
    },
    "02-generators": {
        "items_after_sort": Ask(
            NUMBER,
            {
                (
                    lambda n: n.listed + n.sorted
                ): "You added the lists. The items of a generator take the place of those in the state.",
                (
                    lambda n: n.listed
                ): "Those are the items of List. Sort is a generator as well, and its list takes "
                "their place.",
                ANY: "Count the items in what Sort returned.",
            },
        ),
        "times_asked": Ask(
            NUMBER,
            {
                1: "The first answer was refused, and the agent was asked again.",
                2: "Was anything wrong with the first answer?",
                3: "The second answer was right, so one repair is the most that was needed.",
                ANY: "Count the turns in the handoff of step 1.",
            },
        ),
        "visits": Ask(
            NUMBER,
            {
                2: "A repair is one more turn of the same visit.",
                ANY: "A visit begins when the cast enters the socket, not when its agent is asked.",
            },
            varies=False,
        ),
    },
    "03-loops": {
        "visits_of_plant": Ask(
            NUMBER,
            {
                (lambda n: n.beds): "That is once for each bed; but a bed that is refused is planted again.",
                (lambda n: n.beds + n.refused + 1): "After the last item the exit is taken, so Plant is not "
                "visited once more.",
                (lambda n: n.beds - n.refused): "A refused bed is not left out: the cursor stays, and it is "
                "planted again.",
                (lambda n: 2 * n.beds): "Not every bed is refused.",
                ANY: "Once for each bed, and once more for each that is refused.",
            },
        ),
        "after_the_last_check": Ask(
            PLACE,
            {
                "socket-2": "The edge leads there, but the list is exhausted, and then only the exits count.",
                "end": "The loop has an exit, and it matches: Check is satisfied.",
                ANY: "The list is exhausted, so look at the exits of the loop.",
            },
            varies=False,
        ),
        "after_an_empty_plan": Ask(
            PLACE,
            {
                "socket-2": "The edge leads there, but a socket that works on items is not entered without one.",
                "socket-4": "That exit waits for satisfied, and nobody has said so: with no items no socket of the "
                "loop was run.",
                "end": "The exit is for always, and that matches even where nobody has said anything.",
                "stop": "Nothing failed: a loop without items is passed over.",
                ANY: "The whole loop is passed over. Does its exit match when nobody has said anything?",
            },
        ),
    },
    "04-rework": {
        "drafts_before_the_stop": Ask(
            NUMBER,
            {
                (
                    lambda n: n.most
                ): "The edge back was taken that often, and each time it led to another draft after "
                "the first one.",
                (
                    lambda n: n.most + 2
                ): "The edge back may be taken only as often as it says; count the ways back.",
                ANY: "The first draft, and one for each time the edge back may be taken.",
            },
        ),
        "drafts_after_reviving": Ask(
            NUMBER,
            {
                (lambda n: n.most + 1): "Reviving grants the limit once more, so Draft is visited again.",
                (lambda n: n.most + 2): "Reviving grants as many ways back as the edge has, not one.",
                (lambda n: 2 * n.most + 2): "The first draft needed no edge back; count only the ways back.",
                ANY: "Reviving grants the same number of ways back once more.",
            },
        ),
        "reasons_it_came_back": Ask(
            NUMBER,
            {
                (
                    lambda n: n.refused
                ): "That many were given. Outside of work items a reason is done with when its "
                "target has answered; which of them is still open?",
                0: "The draft came back with a reason; look at the parts of its prompt.",
                ANY: "Look under Why it came back in the prompt of the last draft.",
            },
            varies=False,
        ),
        "reasons_in_the_state": Ask(
            NUMBER,
            {
                1: "That is what stands under Why it came back, for one agent. The context of the state is added to.",
                ANY: "Every refusal adds its reason to state.context, and nothing takes one away.",
            },
        ),
    },
    "05-utilities": {
        "runs_of_count": Ask(
            NUMBER,
            {
                1: "After Shorten, the cast comes back to Count.",
                (lambda n: n.tries): "Count runs once before Shorten is asked at all.",
                (
                    lambda n: n.tries + 2
                ): "The last text has few enough words, so that count goes on to Print.",
                ANY: "Once for the request, and once for each text that Shorten wrote.",
            },
        ),
        "words_at_the_end": Ask(
            NUMBER,
            {
                8: "Those are the words of the request; Count ran again on what Shorten wrote.",
                (lambda n: n.words + 8): "State is replaced by a utility's patch, not added up.",
                ANY: "It is what the last run of Count wrote.",
            },
        ),
        "after_that_run": Ask(
            STOPS,
            {
                "socket-2": "The edge to Shorten has been taken as often as it may be.",
                "socket-3": "Six words are too many, so the first edge matches; and a limit that is reached stops the "
                "cast, it does not hand on to the next edge.",
                "end": "No edge leads to the end, and one edge matches; but may it be taken once more?",
                "stop": "Count how often the edge to Shorten was taken before: it may be taken twice.",
                ANY: "Look at maxTraversals of the edge that matches.",
            },
        ),
    },
    "06-handoffs": {
        "after_this_one": Ask(
            STOPS,
            {
                "end": "An envelope chooses no socket itself: it is turned into satisfied, and the edges do the rest.",
                "stop": "Nobody is needed: the envelope says what it wants.",
                ANY: "Turn the envelope into satisfied: true or false, then look at the edges.",
            },
        ),
        "after_blocked": Ask(
            STOPS,
            {
                "socket-3": "The recommendation does not count when the agent says that it is blocked.",
                "socket-1": "Blocked is neither satisfied nor unsatisfied: another round would not help by itself.",
                "end": "The cast does not end; somebody has to speak first.",
                ANY: "Who can help an agent that is blocked?",
            },
            varies=False,
        ),
        "after_no_more_help": Ask(
            STOPS,
            {
                "socket-1": "The reviewer says that another round cannot help, so none is spent.",
                "socket-3": "It was not verified, so it is not satisfied.",
                "stop": "The reviewer says that another round can help, and one is left.",
                "end": "The cast does not end by itself here.",
                ANY: "It is not verified. Can another round help?",
            },
        ),
        "there_and_back": Ask(
            TRUTH,
            {
                ANY: "What both protocols can hold comes through unchanged, and both can say whether it is good enough."
            },
        ),
    },
    "07-debugging": {
        "lost_item": Ask(
            TITLE,
            {
                (
                    lambda n: n.order[n.raw]
                ): "That one was golden. Which item was raw, and not in the oven when the "
                "oven was visited again?",
                ANY: "Which item does the visit of the oven have that is raw? Look at the step after the refusal.",
            },
        ),
        "cursor_after_the_refusal": Ask(
            NUMBER,
            {
                (
                    lambda n: n.raw - 1
                ): "That is where it stood before Taste answered; the record of that step says "
                "where it moved.",
                (lambda n: n.raw + 1): "It moves by one in each step of Taste.",
                ANY: "The first line of the record of the refusal says it.",
            },
        ),
        "visits_of_bake_when_mended": Ask(
            NUMBER,
            {
                (
                    lambda n: len(n.order)
                ): "That is once for each item; one of them is raw at first, and goes back.",
                (lambda n: 2 * len(n.order)): "Only one visit is raw.",
                ANY: "Once for each item, and once more for each that is sent back.",
            },
        ),
    },
    "08-designing": {
        "problems": Ask(
            NUMBER,
            {
                1: "There is one more: check lists every problem, not only the first.",
                3: "One of them is the way back that is missing: it is no problem for check, only for you.",
                ANY: "Count the lines that begin with problem.",
            },
            varies=False,
        ),
        "how_it_ends": Ask(
            ENDS,
            {
                "complete": "The edge that matches may be taken only so often; once more is a limit, and a limit is a "
                "failure.",
                "failed": "It is refused no more often than the way back may be taken.",
                ANY: "Either complete or failed: is a limit reached?",
            },
        ),
        "its_route": Ask(
            ROUTE, {ANY: "Where does the cast stand when the way back would be taken once too often?"}
        ),
    },
    "09-a-real-model": {
        "asked": Ask(
            NUMBER,
            {
                1: "A refused answer is asked for again, once.",
                3: "One repair turn is granted here, so there were two turns.",
                ANY: "Count the turns that the handoff shows.",
            },
            varies=False,
        ),
        "wrong": Ask(
            NUMBER,
            {
                1: "There is one more issue behind the second answer.",
                4: "Those are the issues of both answers together.",
                ANY: "Count the issues that the handoff lists after the repair turn.",
            },
            varies=False,
        ),
        "tokens_used": Ask(
            NUMBER, {ANY: "Look for the row of that materia, and at the column of both together."}
        ),
    },
    "10-complete": {
        "delivered_raw": Ask(
            TITLE,
            {
                (
                    lambda n: n.order[n.raw]
                ): "That one was in the oven again. What was refused, and when was it baked again?",
                ANY: "Which item did Taste refuse?",
            },
        ),
        "in_the_oven": Ask(
            TITLE,
            {
                (
                    lambda n: n.order[n.raw - 1]
                ): "That is what should have been in the oven. Where had the cursor moved?",
                ANY: "Look at the item of the step after the refusal.",
            },
        ),
        "times_it_was_baked": Ask(
            NUMBER,
            {
                2: "Socket-2 is visited again, but with another item.",
                ANY: "Count the rows of Socket-2 whose item it is.",
            },
            varies=False,
        ),
    },
    "11-bug-clinic": {
        "parcels_left": Ask(
            NUMBER,
            {
                (lambda n: n.parcels): "One was packed and weighed.",
                0: "The way out is an edge, and it is taken while items are left.",
                1: "One was packed; how many were ordered?",
                ANY: "How many were ordered, and how many were packed when the van left?",
            },
        ),
        "edges_that_matched": Ask(
            NUMBER,
            {
                1: "There is one edge; but what does it wait for, and what was said?",
                ANY: "There is one edge. Does it match?",
            },
            varies=False,
        ),
        "step_of_the_last_page": Ask(
            NUMBER,
            {
                (lambda n: 2 * n.pages): "That is the page being set; its verdict comes after it.",
                (lambda n: 2 * n.pages - 1): "That was the page before; one was left.",
                ANY: "One step for the list, and two for each page.",
            },
        ),
    },
    "12-two-worlds": {
        "they_part_in_step": Ask(
            NUMBER,
            {
                (
                    lambda n: 2 * n.refused + 2
                ): "There it shows: another bed is planted. It was decided one step before.",
                ANY: "In which step does the advance do something in one world and nothing in the other?",
            },
        ),
        "steps_of_a": Ask(
            NUMBER,
            {
                (
                    lambda n: 2 * n.beds + 2
                ): "The refused bed is planted again in this world, and checked again.",
                ANY: "Go step by step: after a no, the same bed is planted again.",
            },
        ),
        "steps_of_b": Ask(
            NUMBER,
            {
                (lambda n: 2 * n.beds + 4): "In this world the cursor moves on after the no.",
                ANY: "Go step by step: after each verdict the next bed is planted.",
            },
        ),
    },
    "13-break-it": {
        "verdicts": Ask(
            VERDICTS,
            {
                (
                    lambda n: [True] * n.pages
                ): "Then the last page is fine, and the exit for satisfied leads to Bind.",
                (
                    lambda n: [False] + [True] * (n.pages - 1)
                ): "The last page is fine, and the exit looks at nothing else.",
                ANY: "Which verdict is given in the step that exhausts the list?",
            },
        ),
        "shortest_without_a_book": Ask(
            NUMBER,
            {
                1: "That is with no page at all.",
                (lambda n: 2 * n.least): "The list of pages is a visit as well.",
                ANY: "As few pages as there may be, the last one refused: count the visits.",
            },
        ),
        "still_without_a_book": Ask(
            TRUTH,
            {
                True: "The exit takes any verdict, even none: with no pages at all the book is bound as well.",
                False: "With no pages at all nobody says anything, and the exit waits for satisfied.",
                ANY: "Which exit does the mended loop have, and when is the list exhausted?",
            },
        ),
    },
    "14-make-it-happen": {
        "closed": Ask(
            VERDICTS,
            {
                "[True]": "Solve is asked as well, so one verdict is too few.",
                "[True, False]": "Solve is not satisfied there, so it goes back to Triage.",
                ANY: "Which sockets lead to Close, and what has to be said in each of them?",
            },
            varies=False,
        ),
        "asked_again": Ask(
            VERDICTS,
            {
                (
                    lambda n: [True, False] * (n.times - 1) + [True, True]
                ): "It does, but there is a shorter way to an end, when Triage was asked for the last time.",
                ANY: "What leads back to Triage? And from there, which is the shortest way to an end?",
            },
        ),
        "failed": Ask(
            VERDICTS,
            {
                (
                    lambda n: [True, False] * n.most
                ): "The way back may be taken that often: that is the last time it may.",
                ANY: "Which edge has a limit? Take it once more than it may be taken.",
            },
        ),
        "forms_taken": Ask(
            NUMBER,
            {
                4: "Some of them are refused: look for words in quotes, and for fields that nobody asked for.",
                0: "One of them at least has all that is asked for, in the right form.",
                ANY: "Go through them: is satisfied there, is it true or false without quotes, and is there anything "
                "else?",
            },
        ),
        "after_ask_back": Ask(
            PLACE,
            {
                "socket-2": "Look at the socket: does it read its output as JSON?",
                "end": "The socket reads its output as JSON, so what is said there counts.",
                ANY: "A socket without parse: json has a text for its output, whatever the text looks like.",
            },
        ),
    },
    "15-by-hand": {
        "how_it_ends": Ask(
            ENDS,
            {
                "failed": "No dish is refused twice, and max 1 counts for each dish.",
                "complete": "One dish is refused twice, and its way back may be taken once.",
                ANY: "Either complete or failed: is the edge back ever used up?",
            },
        ),
        "reasons_it_came_back": Ask(
            NUMBER,
            {
                (lambda n: n.pie + 2): "Those of the soup and the salad were done with when these were done.",
                ANY: "Reasons belong to an item. How often was this one refused?",
            },
        ),
        "reasons_in_the_state": Ask(
            NUMBER,
            {
                (
                    lambda n: n.pie
                ): "Those are the reasons of the pie, which its cook is told. The context of the state is not "
                "forgotten when an item is done.",
                ANY: "Every refusal adds its reason to state.context, whatever item it is about.",
            },
        ),
        "dish_after_a_new_menu": Ask(
            TITLE,
            {
                (
                    lambda n: n.menu[1]
                ): "That would be so if the cursor had stayed where it was; but the list is a new one.",
                (
                    lambda n: n.menu[2]
                ): "The second dish was refused, so nothing moved on; and the list is a new one.",
                ANY: "A generator has answered again: where does the cursor stand?",
            },
        ),
        "stove": Ask(
            "an object, such as {'gas': 1}",
            {
                (
                    lambda n: {"gas": 3, "lamp": "on", "oven": n.oven}
                ): "The merge is not deep: stove is one key.",
                "{'gas': 3, 'lamp': 'on'}": "That is what the first visit wrote.",
                ANY: "What is the latest that was written under the key stove?",
            },
        ),
        "times_scrubbed": Ask(
            NUMBER,
            {
                1: "Its edge leads back to it, and its cursor moves on.",
                (lambda n: n.pans + 1): "After the last pan the list is exhausted, and then no edge counts.",
                ANY: "Once for each of what foreach goes over.",
            },
        ),
        "has_items": Ask(TRUTH, {ANY: "Heat writes them, but who may make work items?"}, varies=False),
    },
    "16-on-duty": {
        "decisions": Ask(
            "a list of six, such as ['approve', 'deny', 'answer', ...]",
            {ANY: "Read the command of the first that is wrong, letter by letter: which files go?"},
        ),
        "covered": Ask(TRUTH, {ANY: "What was consented to is one command, exactly as it was shown."}),
    },
}
"""By lesson and question."""
