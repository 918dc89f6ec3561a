"""Every error the program raises on purpose. Each message names the value, the rule and the fix."""
from __future__ import annotations

LONGEST = 1000  # characters of a message


class UnspoolError(Exception):
    """Something was refused or could not be done, for the reason in the message.

    The message is one line. What files and callers wrote into it may be long, so its middle is cut.
    """

    def __init__(self, message: str = "") -> None:
        line = " ".join(message.splitlines())
        half = LONGEST // 2
        super().__init__(line if len(line) <= LONGEST else f"{line[:half]} ... {line[-half:]}")


class ParameterError(UnspoolError, ValueError):
    """A decoding parameter is unknown, out of range, in conflict, or not in this version."""

    def __init__(self, message: str, name: str | None = None) -> None:
        super().__init__(message)
        self.name = name  # the canonical name of the parameter, for an API's `param` field


class PromptError(UnspoolError, ValueError):
    """A prompt cannot be used: empty, too long, or with ids that the vocabulary lacks."""


class ModelError(UnspoolError):
    """A model cannot be found, read or run."""


class FormatError(ModelError, ValueError):
    """A model or tokenizer file is damaged, hostile or in an unknown format."""


class TemplateError(UnspoolError, ValueError):
    """A chat template is missing, breaks its limits, or does not render."""


class RowError(UnspoolError):
    """The model's row of scores cannot be read: NaN, or nothing left to choose from."""
