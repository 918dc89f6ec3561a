import pytest

from unspool.show.visible import harmless, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (" blue", "·blue"),
        ("\n\n", "↵↵"),
        ("\ta b", "⇥a·b"),
        ("\x1b[2J", "⟨U+001B⟩[2J"),
        ("a\u202eb", "a⟨U+202E⟩b"),
        ("\u200b", "⟨U+200B⟩"),
        ("né 語 👩\u200d🚀", "né·語·👩\u200d🚀"),
        ("", ""),
    ],
)
def test_every_character_is_seen(text, shown):
    assert visible(text) == shown


def test_text_keeps_its_lines_and_loses_what_drives_a_terminal():
    assert harmless("a b\n\tc\r\x1b]0;title\x07") == "a b\n\tc⟨U+000D⟩⟨U+001B⟩]0;title⟨U+0007⟩"
