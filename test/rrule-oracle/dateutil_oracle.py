"""Answers for recurrence rules from python-dateutil: one JSON object a line in, one list of local times a line out.

Rules come without COUNT and UNTIL, and times are local and without a zone: both are judged by the caller, because
dateutil knows no clock changes. A rule ends at "last", so that one that never matches comes to an end. The answer is null
for a rule that takes longer than a tenth of a second: dateutil looks at every second of a rule of seconds.
"""
import json
import signal
import sys
from datetime import datetime

from dateutil.rrule import rrulestr

FORMAT = "%Y%m%dT%H%M%S"


def answer(question):
    start = datetime.strptime(question["dtstart"], FORMAT)
    last = datetime.strptime(question["last"], FORMAT)
    times = []
    try:
        for time in rrulestr(question["rrule"], dtstart=start).replace(until=last):
            times.append(time.strftime(FORMAT))
            if len(times) == question["take"]:
                break
    except ValueError as error:
        # Said of rules of hours, minutes or seconds that never come to the times they ask for.
        if "empty" not in str(error):
            raise
    return times


def give_up(_signal, _frame):
    raise TimeoutError


signal.signal(signal.SIGVTALRM, give_up)
for line in sys.stdin:
    question = json.loads(line)
    signal.setitimer(signal.ITIMER_VIRTUAL, 0.1)
    try:
        times = answer(question)
    except TimeoutError:
        times = None
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    print(json.dumps(times), flush=True)
