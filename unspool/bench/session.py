"""One run of `unspool bench`: finds the model and the engines, measures, and makes the report."""
from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from unspool.bench import beams, caches, loading, shaping
from unspool.bench.engines import Target, interpreter, ours, peer, readers
from unspool.bench.machine import machine
from unspool.bench.peers import SHARED
from unspool.bench.points import SHORT, Measure
from unspool.bench.prompts import Prompts
from unspool.bench.race import Race, Track, race, write
from unspool.bench.report import MS, RATE, SECONDS, Run, equal, report
from unspool.bench.roofline import weights_of
from unspool.bench.runner import Runner, Say, cores
from unspool.bench.worker import Command, WorkerError
from unspool.files import store
from unspool.llm.load import locate, tokenizer_of

REFERENCE = "reference"


@dataclass(frozen=True, slots=True)
class Plan:
    """What the user asked for. `numerics`: our engines, the one that is compared first.

    `kv`: how our engine keeps keys and values (None: its own choice); `peers`: names of
    `engines.PEERS`; `python`: the interpreter of the peers' environment, unless it is looked for.
    """

    model: str | None = None
    numerics: Sequence[str] = ("default", "fast")
    kv: str | None = None
    peers: Sequence[str] = ()
    python: str | None = None
    threads: int | None = None  # of each engine; None: all cores
    rounds: int = 5
    sampled: bool = False


class Session:
    """A plan with its model found. Raises ModelError when there is none or it cannot be read."""

    def __init__(self, plan: Plan, say: Say) -> None:
        self.plan, self.say = plan, say
        self.source = locate(plan.model)
        self.words = tokenizer_of(self.source, None)
        self.prompts = Prompts(self.words)
        self.known = plan.model is None or plan.model == store.DEFAULT
        self.threads = plan.threads or cores()

    def target(self, context: int, rows: int = 1) -> Target:
        return Target(self.plan.model, self.source, self.threads, context, rows)

    def speed(self, measure: Measure) -> dict[str, Any]:
        """decode, prefill or batch."""
        target, plan = self.target(measure.context, measure.rows), self.plan
        track = Track(measure, self.prompts, plan.rounds, plan.sampled)
        facts = machine()
        with self.engines(target) as (runner, engines):
            found = race(runner, engines, self.readers(), track)
            text = self.compared(runner, target, track, found) if measure.verb == "decode" else {}
            return report(Run(
                measure.verb, RATE, measure.main, {p.label: p.x for p in measure.points},
                plan.numerics, found, runner.missing, runner.notes(), facts,
                self.settings(axis=measure.axis, sampled=plan.sampled),
                weights_of(self.source), self.known and not plan.sampled, text))

    def load(self) -> dict[str, Any]:
        target, plan = self.target(64), self.plan
        facts = machine()
        fresh = {name: partial(ours, target, name, name) for name in plan.numerics}
        with self.engines(target) as (runner, engines):
            found = loading.loads(runner, engines, fresh, self.source.weights,
                                  (self.prompts, plan.rounds))
            return report(Run("load", SECONDS, loading.FIRST, {}, plan.numerics, found,
                              runner.missing, runner.notes(), facts, self.settings()))

    def shape(self) -> dict[str, Any]:
        """Our rules and transformers' processors, on the same rows."""
        plan, facts = self.plan, machine()
        with tempfile.TemporaryDirectory() as scratch, Runner(self.say) as runner:
            folder = shaping.save_rows(plan.model, self.prompts, Path(scratch))
            commands = shaping.commands(runner, folder, plan.peers, plan.python)
            found = shaping.shapes(runner, commands, plan.rounds)
            return report(Run("shape", MS, shaping.ONE, {}, (shaping.OURS,), found, runner.missing,
                              runner.notes(), facts, self.settings(rules=shaping.USUAL)))

    def beam(self, width: int, new: int) -> dict[str, Any]:
        """A beam search, and sampling as many texts as there are beams."""
        plan, facts = self.plan, machine()
        with self.engines(self.target(SHORT + new, width)) as (runner, engines):
            found = beams.searches(runner, engines, self.prompts, width, new, plan.rounds)
            made = report(Run("beam", SECONDS, beams.main(width), {}, plan.numerics, found,
                              runner.missing, runner.notes(), facts,
                              self.settings(axis="request", width=width, new=new),
                              text=self.beside(found, beams.PEER, "the best text's tokens")))
            return made | {"times_samples": beams.costs(found)}

    def cache(self, lengths: Sequence[int], kinds: Sequence[str]) -> dict[str, Any]:
        """The caches of our own engine, in the first numerics of the plan."""
        numerics = self.plan.numerics[0]
        target = self.target(max(lengths) + 64)

        def start(method: caches.Method) -> Command:
            kv = None if method.kv == "f32" else method.kv
            return ours(target, numerics, method.name, memory=method.memory, kv=kv)

        tracks = {method: Track(caches.points(lengths, method), self.prompts, self.plan.rounds)
                  for method in caches.methods(kinds)}
        facts = machine()
        with Runner(self.say) as runner:
            found, sizes = caches.measure(runner, tracks, start)
            return caches.report(found, sizes, {
                "machine": facts, "settings": self.settings(numerics=numerics),
                "missing": dict(runner.missing), "notes": runner.notes()})

    @contextmanager
    def engines(self, target: Target) -> Iterator[tuple[Runner, list[Command]]]:
        """Ours and the peers that are there, for one run."""
        plan = self.plan
        with tempfile.TemporaryDirectory() as scratch, Runner(self.say) as runner:
            commands = [ours(target, name, name, kv=plan.kv) for name in plan.numerics]
            for name in plan.peers:
                self.say(f"looking for {name}")
                try:
                    commands.append(peer(name, target, plan.python, Path(scratch) / name))
                except WorkerError as error:
                    runner.drop(name, str(error))
            yield runner, commands

    def readers(self) -> list[Command]:
        """Ours; where torch is only in the peers' environment, its reader there."""
        commands = [readers(self.threads)]
        if find_spec("torch") is None and self.plan.peers:
            try:
                python = interpreter(SHARED, self.plan.python)
            except WorkerError:
                return commands
            commands.append(readers(self.threads, python, "torch"))
        return commands

    def compared(self, runner: Runner, target: Target, track: Track, found: Race) -> dict[str, Any]:
        """How long each engine's greedy text is the reference's: ours, else transformers'."""
        texts = dict(found.texts)
        if REFERENCE not in texts and runner.start(ours(target, REFERENCE, REFERENCE)):
            main = replace(track.measure.first, new=track.measure.warm)
            if answer := write(runner, REFERENCE, track, main, 0, False):
                texts[REFERENCE] = answer["token_ids"][0]
            runner.stop(REFERENCE)
        name = next((name for name in (REFERENCE, "transformers") if name in texts), None)
        if name is None:
            return {}
        return self.beside(replace(found, texts=texts), name, "greedy tokens")

    def beside(self, found: Race, name: str, what: str) -> dict[str, Any]:
        """How long each engine's text is that of the engine `name`; empty where that has none."""
        if name not in found.texts:
            return {}
        ids, mine = found.texts[name], found.texts.get(self.plan.numerics[0], [])
        return {"by": "unspool, numerics reference" if name == REFERENCE else name, "what": what,
                "tokens": len(ids), "reference": self.spoken(ids), "ours": self.spoken(mine),
                "equal": {engine: equal(other, ids) for engine, other in found.texts.items()
                          if engine != name}}

    def spoken(self, ids: Sequence[int]) -> str:
        return "" if self.words is None else self.words.decode(ids, start=False)

    def settings(self, **more: Any) -> dict[str, Any]:
        plan = self.plan
        return {"model": plan.model or store.DEFAULT, "file": self.source.weights.name,
                "rounds": plan.rounds, "numerics": list(plan.numerics), "kv": plan.kv,
                "peers": list(plan.peers), "threads": self.threads, **more}

