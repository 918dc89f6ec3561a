"""Every error the program raises on purpose. Each message names the value, the rule and the fix."""
from __future__ import annotations


class UnspoolError(Exception):
    """Something was refused or could not be done, for the reason in the message."""


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
