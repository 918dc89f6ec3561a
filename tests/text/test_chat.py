"""Templates from model files: what they may write, and that they cannot do anything else."""
from __future__ import annotations

import ast
import gc
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import unspool
from unspool.core.errors import TemplateError
from unspool.text.chat import ChatTemplate

Make = Callable[[str], ChatTemplate]
HELLO: dict[str, Any] = {"messages": [{"role": "user", "content": "hello"}]}


@pytest.fixture
def make() -> Iterator[Make]:
    made: list[ChatTemplate] = []

    def start(source: str) -> ChatTemplate:
        made.append(ChatTemplate(source))
        return made[-1]

    yield start
    for template in made:
        template.close()


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{% for m in messages %}[{{ m.role }}] {{ m['content'] }}{% endfor %}", "[user] hello"),
        ("{% for m in messages %}\n    {{ m.content }}\n{% endfor %}\n", "    hello\n"),
        ("{% for m in messages %}{% break %}{{ m }}{% endfor %}.", "."),
        ("a{% generation %}b{% endgeneration %}c", "abc"),
        ("{{ {'a': '<é>', 'b': [1]} | tojson }}", '{"a": "<é>", "b": [1]}'),
        ("{{ {'a': 1} | tojson(indent=2) }}", '{\n  "a": 1\n}'),
        ("{% set ns = namespace(n=0) %}{% set ns.n = 2 %}{{ ns.n }}", "2"),
        ("{{ bos_token }}|{{ nothing }}|", "||"),
        ("{{ strftime_now('%%') }}", "%"),
        ("{{ '<b>' }}", "<b>"),
    ],
)
def test_what_templates_use(make: Make, source: str, text: str) -> None:
    assert make(source).render(HELLO) == text


def test_one_process_serves_many_renders(make: Make) -> None:
    template = make("{{ x }}")
    seen: list[str] = [""] * 16

    def work(index: int) -> None:
        for count in range(20):
            seen[index] = template.render({"x": f"{index}.{count}"})

    threads = [threading.Thread(target=work, args=(i,)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [f"{i}.19" for i in range(16)]


def test_a_failed_render_leaves_the_next_one_whole(make: Make) -> None:
    template = make("{% if spin %}{% for a in range(99999) %}{% for b in range(99999) %}"
                    "{% endfor %}{% endfor %}{% endif %}{{ x * n }}")
    assert template.render({"spin": 0, "x": "a", "n": 2}) == "aa"
    with pytest.raises(TemplateError, match="works longer than 1 s"):
        template.render({"spin": 1})
    with pytest.raises(TemplateError, match="more than 96 MiB"):
        template.render({"spin": 0, "x": "a", "n": 10**9})
    with pytest.raises(TemplateError, match="UndefinedError"):
        template.render({"spin": 0, "n": 2})
    assert template.render({"spin": 0, "x": "b", "n": 3}) == "bbb"


LOOP = "{% for a in range(999) %}{% for b in range(999) %}{% for c in range(999) %}"
DENIALS = {
    "three loops": (LOOP + "{% endfor %}" * 3, "works longer than 1 s"),
    "a long string": ("{{ 'x' * 10**9 }}", "more than 96 MiB"),
    "a long string, folded": ("{{ 'x' | center(10**9) }}", "more than 96 MiB"),
    "doubling": (
        "{% set ns = namespace(x='x') %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x %}"
        "{% endfor %}{{ ns.x | length }}",
        "more than 96 MiB",
    ),
    "a huge power": ("{{ 7 ** (10 ** 9) }}", "works longer than 1 s"),
    "endless recursion": ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "too deeply"),
    "branching recursion": (
        "{% macro f(n) %}{% if n %}{{ f(n-1) }}{{ f(n-1) }}{% endif %}{% endmacro %}{{ f(40) }}",
        "works longer than 1 s",
    ),
    "long output": (
        "{% for a in range(99999) %}{{ 'x' * 999 }}{% endfor %}",
        "more than 1,048,576 characters",
    ),
    "a long template": ("x" * 2**20, "at most 262,144 are rendered"),
    "deep nesting": ("{% if 1 %}" * 3000 + "{% endif %}" * 3000, "too deeply"),
    "half a character": (r"{{ '\ud800' }}", "half a character"),
    "another template": ("{% include 'other' %}", "no loader"),
    "bad syntax": ("{% for %}", "TemplateSyntaxError"),
}


@pytest.mark.parametrize("name", DENIALS)
def test_a_costly_or_broken_template_is_stopped(make: Make, name: str) -> None:
    source, words = DENIALS[name]
    with pytest.raises(TemplateError) as caught:
        make(source).render(HELLO)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_a_costly_template_costs() -> None:
    """At most 1.5 s of work each and 100 MB above an idle worker, counted by the system."""
    pytest.importorskip("resource", reason="the system counts no resources of child processes")
    script = (
        "import sys, json, resource\n"
        "from unspool.core.errors import TemplateError\n"
        "from unspool.text.chat import ChatTemplate\n"
        "def used():\n"
        "    usage = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss\n"
        "idle = ChatTemplate('')\n"
        "idle.render({}); idle.close()\n"
        "seconds, start = used()\n"
        "for source in json.load(sys.stdin):\n"
        "    template = ChatTemplate(source)\n"
        "    try: template.render({'messages': []})\n"
        "    except TemplateError: pass\n"
        "    template.close()\n"
        "    now, peak = used()\n"
        "    assert now - seconds < 1.5, (source[:60], now - seconds)\n"
        "    assert peak - start < 100_000, (source[:60], peak - start)\n"
        "    seconds = now\n"
    )
    sources = [DENIALS[name][0] for name in ("three loops", "a long string", "doubling")]
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=json.dumps([*sources, "{{ (['x' * 1000] * 100000) | join }}"]),
        capture_output=True,
        text=True,
        timeout=120,
        cwd=Path(unspool.__file__).parents[1],
    )
    assert done.returncode == 0, done.stderr


ESCAPES = [
    """{{ lipsum.__globals__["os"].system("touch MARK") }}""",
    """{{ cycler.__init__.__globals__.os.popen("touch MARK").read() }}""",
    """{{ self.__init__.__globals__.__builtins__.__import__("os").system("touch MARK") }}""",
    """{% for c in ().__class__.__base__.__subclasses__() %}"""
    """{% if c.__name__ == "catch_warnings" %}"""
    """{{ c()._module.__builtins__["open"]("MARK", "w") }}{% endif %}{% endfor %}""",
    """{{ raise_exception.__globals__["sys"].modules["os"].system("touch MARK") }}""",
    """{{ "{0.__class__.__init__.__globals__[os]}".format(raise_exception) }}"""
    """{{ (messages|map(attribute="__class__")|list)[0].__mro__[1].__subclasses__()"""
    """[0].__init__.__globals__["os"].system("touch MARK") }}""",
    """{{ namespace.__init__.__globals__["os"].popen("touch MARK").read() }}""",
    """{{ (messages|attr("__class__")).__base__.__subclasses__() }}{{ joiner|attr("__init__")"""
    """|attr("__globals__")|attr("get")("os")|attr("system")("touch MARK") }}""",
]


@pytest.mark.parametrize("source", ESCAPES)
def test_sc01_a_hostile_template_has_no_effect(make: Make, source: str, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with pytest.raises(TemplateError):
        make(source.replace("MARK", str(mark))).render(HELLO)
    assert not mark.exists()


def test_sc01_the_payloads_work_where_nothing_guards(tmp_path: Path) -> None:
    """So the test above can fail: plain Jinja runs the first payload."""
    from jinja2 import Environment

    mark = tmp_path / "mark"
    Environment().from_string(ESCAPES[0].replace("MARK", str(mark))).render()
    assert mark.exists()


def test_a_template_refuses_messages_in_its_own_words(make: Make) -> None:
    with pytest.raises(TemplateError, match="refuses these messages: no system role"):
        make("{{ raise_exception('no system role') }}").render(HELLO)


def test_messages_cannot_be_changed_by_a_template(make: Make) -> None:
    with pytest.raises(TemplateError, match="SecurityError"):
        make("{{ messages.append(1) }}").render(HELLO)


def test_close_and_garbage_end_the_process() -> None:
    template = ChatTemplate("{{ 1 }}")
    template.close()  # nothing was started
    assert template.render({}) == "1"
    first = template._process
    template.close()
    assert first is not None and first.poll() is not None
    assert template.render({}) == "1"
    second = template._process
    del template
    gc.collect()
    assert second is not None and second.poll() is not None


def test_a_killed_process_is_replaced(make: Make) -> None:
    template = make("{{ 1 }}")
    assert template.render({}) == "1"
    assert template._process is not None
    template._process.kill()
    with pytest.raises(TemplateError, match="ended its process"):
        template.render({})
    assert template.render({}) == "1"


def test_an_interrupted_render_answers_no_later_one(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    template = make("{{ x }}")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("unspool.text.chat.Future.result", interrupt)
        with pytest.raises(KeyboardInterrupt):
            template.render({"x": "first"})
    assert template.render({"x": "second"}) == "second"


def test_a_worker_that_cannot_import(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [path for path in sys.path if "site-packages" not in path])
    with pytest.raises(TemplateError, match=r"ended its process \(exit code 1\)"):
        make("x" * 200_000).render({})


def test_no_process_can_be_started(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", os.devnull)
    with pytest.raises(TemplateError, match="cannot start the process"):
        make("{{ 1 }}").render({})


def test_one_place_makes_an_environment() -> None:
    """Every other use of jinja2 would be a second way in (CVE-2024-34359 and its siblings)."""
    package = Path(unspool.__file__).parent
    users = set()
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            if any(name.split(".")[0] == "jinja2" for name in names):
                users.add(path.name)
            called = node.func if isinstance(node, ast.Call) else None
            if getattr(called, "attr", "") == "apply_chat_template":
                users.add(path.name)
    assert users == {"template_worker.py"}


def test_an_interrupt_in_the_terminal_leaves_the_renderer_alone():
    template = ChatTemplate("{{ messages[0].content }}")
    said = {"messages": [{"role": "user", "content": "hi"}]}
    assert template.render(said) == "hi"
    assert os.getpgid(template._process.pid) != os.getpgid(0)  # the group that gets Ctrl-C
    template.close()
