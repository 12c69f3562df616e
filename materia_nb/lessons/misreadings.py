"""What a wrong answer in a lesson shows to have been misread: by lesson, question and answer.

It stands here and not in the notebooks, where it would tell the answers to whoever looks at the check cell.
"""

from collections.abc import Mapping
from typing import Final

ANY: Final = "*"
"""Any other wrong answer."""

MISREADINGS: Final[Mapping[str, Mapping[str, Mapping[str, str]]]] = {
    "01-edges": {
        "whole_route": {
            "['socket-1', 'socket-3']": "Socket-1 says that it is not satisfied: look at what its first edge waits for.",
            ANY: "Begin at the entry, and take the first edge that matches at each socket.",
        },
        "after_the_last": {
            "stop": "Nothing failed and nobody is asked: where no edge matches, or there is none, the cast ends.",
            ANY: "Does any edge leave the last socket? If not, there is only one thing that a cast can do.",
        },
    },
    "02-generators": {
        "items_after_sort": {
            "3": "You added the lists. The items of a generator take the place of those in the state.",
            "2": "Those are the items of List. Sort is a generator as well, and its list takes their place.",
            ANY: "Count the items in what Sort returned.",
        },
        "times_asked": {
            "1": "The first answer was refused, and the agent was asked again.",
            "3": "Only one repair was needed: the second answer was right.",
            ANY: "Count the turns in the handoff of step 1.",
        },
        "visits": {
            "2": "A repair is one more turn of the same visit.",
            ANY: "A visit begins when the cast enters the socket, not when its agent is asked.",
        },
    },
    "03-loops": {
        "visits_of_plant": {
            "1": "That is one visit for one item; there are three.",
            "2": "There were two beds above. Here there are three.",
            "4": "After the last item the exit is taken, so Plant is not visited once more.",
            ANY: "Each item comes to Plant once, when Check is always satisfied.",
        },
        "after_the_last_check": {
            "socket-2": "The edge leads there, but the list is exhausted, and then only the exits count.",
            "end": "The loop has an exit, and it matches: Check is satisfied.",
            ANY: "The list is exhausted, so look at the exits of the loop.",
        },
        "after_an_empty_plan": {
            "socket-2": "The edge leads there, but a socket that works on items is not entered without one.",
            "socket-4": "That exit waits for satisfied, and nobody has said so: with no items no socket of the loop was run.",
            "stop": "Nothing failed: a loop without items is passed over.",
            ANY: "The whole loop is passed over. Which of its exits can match when nobody has said anything?",
        },
    },
    "04-rework": {
        "drafts_before_the_stop": {
            "2": "The edge back was taken twice, and each time it led to another draft after the first one.",
            "4": "The edge back may be taken twice, so there is no third way back.",
            ANY: "The first draft, and one for each time the edge back may be taken.",
        },
        "drafts_after_reviving": {
            "3": "Reviving grants the limit once more, so Draft is visited again.",
            "4": "Reviving grants as many ways back as the edge has, and that is two.",
            "6": "The first draft needed no edge back; count only the ways back that are granted.",
            ANY: "Reviving grants the same number of ways back once more.",
        },
        "reasons_for_the_third_draft": {
            "2": "Outside of work items a reason is done with when its target has answered: only the latest is told.",
            "0": "The draft came back with a reason; look at the layers of its prompt.",
            ANY: "Look at the layer follow-up in the prompt of step 5.",
        },
    },
    "05-utilities": {
        "runs_of_count": {
            "1": "After Shorten, the cast comes back to Count.",
            "3": "The shortened text has few enough words, so the second count goes on to Print.",
            ANY: "Count the rows of Count among the steps.",
        },
        "words_at_the_end": {
            "8": "Those are the words of the request; Count ran again on what Shorten wrote.",
            "11": "State is replaced by a utility's patch, not added up.",
            ANY: "It is what the last run of Count wrote.",
        },
        "after_the_third_count": {
            "socket-2": "The edge to Shorten has been taken as often as it may be.",
            "socket-3": "A used-up edge still matches: the limit stops the cast, it does not hand on to the next edge.",
            "end": "No edge leads to the end, and one edge matches; but may it be taken a third time?",
            ANY: "Look at maxTraversals of the edge that matches.",
        },
    },
    "06-handoffs": {
        "after_verified": {
            "socket-1": "VERIFIED with CONTINUE counts as satisfied.",
            "end": "An envelope chooses no socket itself: it is turned into satisfied, and the edges do the rest.",
            "stop": "Nothing is wrong and nobody is needed: it was verified.",
            ANY: "Turn the envelope into satisfied: true or false, then look at the edges.",
        },
        "after_blocked": {
            "socket-3": "The recommendation does not count when the agent says that it is blocked.",
            "socket-1": "Blocked is neither satisfied nor unsatisfied: another round would not help by itself.",
            "end": "The cast does not end; somebody has to speak first.",
            ANY: "Who can help an agent that is blocked?",
        },
        "there_and_back": {
            ANY: "What both protocols can hold comes through unchanged, and both can say that it is not good enough.",
        },
    },
    "07-debugging": {
        "lost_item": {
            "rolls": "The rolls were golden. Which item was raw, and not in the oven when the oven was visited again?",
            ANY: "Look at the items of steps 3 and 4.",
        },
        "cursor_at_the_second_visit": {
            "0": "That is where it stood before Taste answered; the record of step 3 says where it moved.",
            "2": "That is where it stands when the list is exhausted.",
            ANY: "The first line of the record of step 3 says it.",
        },
        "visits_of_bake_when_mended": {
            "2": "That is once for each item; one of them is raw at first, and goes back.",
            "4": "Only the first visit is raw; everything after it is golden.",
            ANY: "Once for each item, and once more for each that is sent back.",
        },
    },
    "08-designing": {
        "problems": {
            "1": "There is one more: check lists every problem, not only the first.",
            "3": "One of them is the way back that is missing: it is no problem for check, only for you.",
            ANY: "Count the lines that begin with problem.",
        },
        "how_it_ends": {
            "complete": "The edge that matches may be taken once; the second time is a limit, and a limit is a failure.",
            ANY: "Either complete or failed: is a limit reached?",
        },
        "its_route": {
            ANY: "The way back may be taken once. Where does the cast stand when it should be taken again?",
        },
    },
    "09-a-real-model": {
        "asked": {
            "1": "A refused answer is asked for again, once.",
            "3": "One repair turn is granted here, so there were two turns.",
            ANY: "Count the turns that the handoff shows.",
        },
        "wrong": {
            "1": "There is one more issue behind the second answer.",
            "4": "Those are the issues of both answers together.",
            ANY: "Count the issues that the handoff lists after the repair turn.",
        },
        "dearest": {
            "eval": "Eval is second. Compare the last column.",
            "build": "Look at the column of both together.",
            ANY: "Look at the last column of the usage.",
        },
    },
    "10-complete": {
        "delivered_raw": {
            "rolls": "The rolls were baked twice. What was refused, and when was it baked again?",
            ANY: "Which item did Taste refuse, in step 3?",
        },
        "in_the_oven": {
            "bread": "That is what should have been in the oven. Look at the item of step 4.",
            ANY: "Look at the item of step 4.",
        },
        "times_bread_was_baked": {
            "2": "Socket-2 is visited that often with the other item.",
            ANY: "Count the rows of Socket-2 whose item is the bread.",
        },
    },
    "11-bug-clinic": {
        "parcels_left": {
            "3": "One was packed and weighed.",
            "1": "One was packed; how many were ordered?",
            ANY: "How many were ordered, and how many were packed when the van left?",
        },
        "edges_that_matched": {
            "1": "There is one edge; but what does it wait for, and what was said?",
            ANY: "There is one edge. Does it match?",
        },
        "step_of_the_last_page": {
            "3": "That was the first page; one was left.",
            "4": "That is the page being set; its verdict comes after it.",
            ANY: "In which step was the verdict on the last page given?",
        },
    },
    "12-two-worlds": {
        "they_part_in_step": {
            "4": "There it shows: another bed is planted. It was decided one step before.",
            ANY: "In which step does the advance do something in one world and nothing in the other?",
        },
        "steps_of_a": {
            "6": "The roses are planted again in this world, and checked again.",
            ANY: "Go step by step: after a no, the same bed is planted again.",
        },
        "steps_of_b": {
            "8": "In this world the cursor moves on after the no.",
            ANY: "Go step by step: after each verdict the next bed is planted.",
        },
    },
    "13-break-it": {
        "two_verdicts": {
            "[True, True]": "Then the last page is fine, and the exit for satisfied leads to Bind.",
            "[False, True]": "The last page is fine, and the exit looks at nothing else.",
            ANY: "Which verdict is given in the step that exhausts the list?",
        },
        "shortest_without_a_book": {
            "1": "That is with no page at all.",
            "5": "That is with two pages; one is enough.",
            ANY: "One page, set and refused: count the visits.",
        },
        "still_without_a_book": {
            ANY: "Which exit does the mended loop have, and when is the list exhausted?",
        },
    },
    "14-make-it-happen": {
        "closed": {
            "[True]": "Solve is asked as well, so one verdict is too few.",
            "[True, False]": "Solve is not satisfied there, so it goes back to Triage.",
            ANY: "Which sockets lead to Close, and what has to be said in each of them?",
        },
        "asked_twice": {
            "[True, False, True, True]": "It does, but there is a shorter way to an end, after Triage was asked again.",
            ANY: "What leads back to Triage? And from there, which is the shortest way to an end?",
        },
        "failed": {
            "[True, False]": "The way back may be taken once: that is the first time.",
            ANY: "Which edge has a limit? Take it once more than it may be taken.",
        },
        "forms_taken": {
            "2": "One of the two has a field that nobody knows, and that is refused as well.",
            "3": "One of them leaves out what the edges wait for.",
            "0": "One of them has all that is asked for, in the right form.",
            ANY: "Go through the four: is satisfied there, is it true without quotes, and is there anything else?",
        },
        "after_ask_back": {
            "socket-2": "Look at the socket: does it read its output as JSON?",
            ANY: "A socket without parse: json has a text for its output, whatever the text looks like.",
        },
    },
    "15-by-hand": {
        "how_it_ends": {
            "failed": "There are three refusals, and max 1. But what does it count for?",
            ANY: "Either complete or failed: is the edge back ever used up?",
        },
        "reasons_for_the_pie": {
            "3": "Those of the soup and the salad were done with when these were done.",
            "2": "How often was the pie itself refused before?",
            ANY: "Reasons belong to an item. How often was this one refused?",
        },
        "dish_after_a_new_menu": {
            "salad": "That would be so if the cursor had stayed where it was; but the list is a new one.",
            "pie": "The salad was refused, so nothing moved on; and the list is a new one.",
            ANY: "A generator has answered again: where does the cursor stand?",
        },
        "stove": {
            "{'gas': 3, 'lamp': 'on', 'oven': 180}": "The merge is not deep: stove is one key.",
            "{'gas': 3, 'lamp': 'on'}": "That is what the first visit wrote.",
            ANY: "What is the latest that was written under the key stove?",
        },
        "times_scrubbed": {
            "1": "Its edge leads back to it, and its cursor moves on.",
            "4": "After the last pan the list is exhausted, and then no edge counts.",
            ANY: "Once for each of what foreach goes over.",
        },
        "has_items": {
            ANY: "Heat writes them, but who may make work items?",
        },
    },
    "16-on-duty": {
        "decisions": {
            ANY: "Read the command of the first that is wrong, letter by letter: which files go?",
        },
        "covered": {
            ANY: "What was consented to is one command, exactly as it was shown.",
        },
    },
}
