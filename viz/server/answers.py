"""The envelope of every answer of the named endpoints, and what a request's fields must be."""

from __future__ import annotations

import functools
import json
import logging
from collections.abc import Callable
from enum import Enum
from typing import TypeVar

from model.serve.cancellation import Cancelled
from model.serve.limits import Busy
from model.trace import interventions_file, is_whole
from model.trace.interventions import NO_INTERVENTIONS, Interventions
from viz.server.discreet_log import describe

VERSION = 1
One = TypeVar("One", bound=Enum)

log = logging.getLogger(__name__)


def answering(endpoint: Callable[..., dict]) -> Callable[..., dict]:
    """The endpoint with its answer in the schema's envelope. Errors are answers too: a caller gets words, not an empty
    stream, and the log gets where it happened, never what was asked."""

    @functools.wraps(endpoint)
    def answer(*args: object, **options: object) -> dict:
        try:
            return {"api_version": VERSION, "status": "ok", **endpoint(*args, **options)}
        except Busy as error:
            return refusal("busy", str(error))
        except Cancelled:
            return refusal("busy", "The caller left before the answer was complete.")
        except ValueError as error:
            return refusal("invalid", str(error))
        except Exception as error:  # the outermost edge: nothing of ours is above it
            log.error("%s failed:\n%s", endpoint.__name__, describe(error))
            return refusal(
                "internal",
                f"The server could not answer ({type(error).__name__}). Other requests are "
                "unaffected; please report this.",
            )

    return answer


def refusal(kind: str, message: str) -> dict:
    """An answer that says why there is none."""
    return {"api_version": VERSION, "status": "error", "error": kind, "message": message}


def string(name: str, value: object) -> str:
    """The value of a field. ValueError if it is no string."""
    if not isinstance(value, str):
        raise ValueError(f"{name} must be a string, found {type(value).__name__}.")
    return value


def whole(name: str, value: object) -> int:
    """The value of a field. ValueError if it is no whole number."""
    if not is_whole(value):
        raise ValueError(f"{name} must be a whole number, found {value!r:.80}.")
    return value


def token_ids(name: str, value: object) -> list[int]:
    """The value of a field. ValueError if it is no list of whole numbers."""
    if not isinstance(value, list):
        raise ValueError(f"{name} must be a list of token ids, found {type(value).__name__}.")
    return [whole(f"an id of {name}", i) for i in value]


def interventions(value: object) -> Interventions:
    """The value of the last field of every endpoint, in the form of a trace's file or its JSON text; None or empty: the
    plain model.
    ValueError, in words, for what is not, or cannot be run from there."""
    if not value:
        return NO_INTERVENTIONS
    return interventions_file.requested(json.loads(value) if isinstance(value, str) else value)


def one_of(name: str, value: object, kinds: type[One]) -> One:
    """The member that a field names by its value. ValueError, with what there is, if there is none."""
    try:
        return kinds(value)
    except ValueError as error:
        raise ValueError(f"Unknown {name} {value!r:.80}: there are {', '.join(one.value for one in kinds)}.") from error
