"""A process that renders one chat template and dies when that costs too much.

Started by `chat.py` as a script: reads one JSON line with the template and the limits, then one
per render, and answers each with one. It is the only place that makes a Jinja environment.
It imports nothing of this package, and has nothing worth stealing: no model, no weights.
"""
from __future__ import annotations

import datetime
import json
import signal
import sys
from typing import Any

from jinja2 import nodes
from jinja2.ext import Extension, LoopControlExtension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

TAGS = {"generation"}


class GenerationTag(Extension):
    """`{% generation %}` marks what the assistant wrote, for training; here it is passed over."""

    tags = TAGS

    def parse(self, parser: Parser) -> nodes.Node | list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class RefusalError(Exception):
    """The template itself refused the messages."""


def raise_exception(message: object) -> None:
    raise RefusalError(str(message))


def strftime_now(form: str) -> str:
    return datetime.datetime.now().strftime(form)


def to_json(value: Any, **options: Any) -> str:
    """JSON as it is, without the HTML escapes of Jinja's own filter."""
    return json.dumps(value, **{"ensure_ascii": False, **options})


def environment() -> ImmutableSandboxedEnvironment:
    made = ImmutableSandboxedEnvironment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[GenerationTag, LoopControlExtension],
    )
    made.filters["tojson"] = to_json
    made.globals["raise_exception"] = raise_exception
    made.globals["strftime_now"] = strftime_now
    return made


def limit_memory(extra: int) -> None:
    """At most `extra` bytes of address space more than now, where the system can say so."""
    try:
        import resource

        with open("/proc/self/statm") as file:
            pages = int(file.read().split()[0])
        top = pages * resource.getpagesize() + extra
        resource.setrlimit(resource.RLIMIT_AS, (top, top))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, OSError, ValueError):
        return  # the parent's clock and the output limit still hold


def limit_time(seconds: float) -> None:
    """The system ends this process after `seconds` of its own work; 0 stops the clock.

    No handler is set, because none would run while one long operation lasts.
    """
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)


class Renderer:
    def __init__(self, source: str, output_chars: int) -> None:
        self._source = source
        self._output_chars = output_chars
        self._template: Any = None

    def __call__(self, variables: dict[str, Any]) -> dict[str, str]:
        """{"text": ...} or {"error": the reason}."""
        try:
            if self._template is None:
                self._template = environment().from_string(self._source)
            return self._render(variables)
        except MemoryError:
            return {"error": "memory"}
        except RecursionError:
            return {"error": "it calls itself too deeply"}
        except RefusalError as error:
            return {"refused": str(error)[:1000]}
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"[:1000]}

    def _render(self, variables: dict[str, Any]) -> dict[str, str]:
        parts: list[str] = []
        length = 0
        for part in self._template.generate(variables):
            length += len(part)
            if length > self._output_chars:
                return {"error": "output"}
            parts.append(part)
        return {"text": "".join(parts)}


def main() -> None:
    first = json.loads(sys.stdin.readline())
    limit_memory(first["memory"])
    render = Renderer(first["template"], first["output"])
    for line in sys.stdin:
        limit_time(first["seconds"])
        answer = json.dumps(render(json.loads(line)))
        limit_time(0)
        print(answer, flush=True)


if __name__ == "__main__":
    main()
