"""What a caller may choose about the fast CPU path. It knows neither models nor files."""
from __future__ import annotations

from dataclasses import dataclass, fields

from unspool.core.errors import ParameterError
from unspool.core.values import shown

KV = ("f32", "bf16", "int8")
QUANTIZE = ("int8",)
MOST_THREADS = 256  # idle ones spin for a moment: thousands would stall the machine


@dataclass(frozen=True, slots=True)
class Options:
    """The defaults change nothing, so every other path accepts them and refuses the rest.

    Raises ParameterError for a value that is not listed here.
    """

    threads: int | None = None  # None: all cores that this process may use
    kv: str = "f32"  # how keys and values are kept
    quantize: str | None = None  # "int8": matrices stored in floats are rounded to 8 bits at load

    def __post_init__(self) -> None:
        threads = self.threads
        if threads is not None and (type(threads) is not int or not 1 <= threads <= MOST_THREADS):
            raise ParameterError(f"threads={shown(threads)}: it must be a whole number from 1 to "
                                 f"{MOST_THREADS}, or None for all cores", "threads")
        if not isinstance(self.kv, str) or self.kv not in KV:
            raise ParameterError(f"kv={shown(self.kv)}: there are {', '.join(KV)}", "kv")
        given = self.quantize
        if given is not None and not (isinstance(given, str) and given in QUANTIZE):
            raise ParameterError(f"quantize={shown(given)}: there is "
                                 f"{', '.join(QUANTIZE)}, or None to compute with the weights as "
                                 "they are stored", "quantize")

    def refuse(self, path: str) -> None:
        """Raises ParameterError for the first choice that `path`, in words, has no use for."""
        for field in fields(self):
            value = getattr(self, field.name)
            if value != field.default:
                raise ParameterError(f"{field.name}={value!r}: {path}, which has no such choice: "
                                     f"leave {field.name} out, or load one of our own families on "
                                     "the CPU with numerics 'default' or 'fast'", field.name)
