"""Thirty-two texts that differ in language, kind and length."""
from __future__ import annotations

LONG = (
    "The harbour had been quiet since the ferry stopped running. In the mornings the gulls walked "
    "along the empty landing stage as if they had bought it, and the keeper of the little museum "
    "opened her door at nine although nobody came before noon. She kept a list of the visitors, "
    "with the weather beside each name, because her mother had done so and because it gave the "
    "days an order. On the first of March she wrote: two boys, wind from the west, sleet. On the "
    "second she wrote nothing. On the third a man in a grey coat asked whether he might see the "
    "old charts, and she took him upstairs, past the model of the lighthouse and the case with "
    "the knots, into the room where the light was best. He unrolled the largest sheet on the "
    "table, put a stone on each corner, and looked at it for so long that she went down again to "
    "make tea. When she came back he had taken out a pencil and was counting under his breath. "
    "\"Somebody has drawn an island here,\" he said, \"and there is no island.\" She told him"
)
TABLE = "n  n^2  n^3\n" + "".join(f"{n}  {n**2}  {n**3}\n" for n in range(1, 21))

TEXTS = (
    "The color of sky is",
    "The",
    "1",
    "\n\n",
    "Once upon a time, in a village by the sea, there lived",
    "Q: What is the capital of France?\nA:",
    "<|im_start|>user\nName three primary colours.<|im_end|>\n<|im_start|>assistant\n",
    LONG,
    "def fibonacci(n):\n    if n < 2:\n        return n\n    return",
    "#include <stdio.h>\n\nint main(void) {\n    for (int i = 0; i < 10; i++) {\n",
    "SELECT name, COUNT(*) FROM visits WHERE day >= '2024-01-01' GROUP BY",
    '{"id": 7, "tags": ["red", "green"], "size": {"w": 640, "h":',
    "<html>\n  <head>\n    <title>Weather</title>\n  </head>\n  <body>\n    <h1>",
    "$ ls -la\ntotal 48\ndrwxr-xr-x  6 user  staff   192 May  3 10:12 .\n",
    "Die Hauptstadt von Deutschland ist",
    "Il était une fois une petite fille qui",
    "El perro corre por la calle y",
    "Однажды утром, когда солнце ещё не взошло,",
    "今天天气很好，我们去",
    "吾輩は猫である。名前は",
    "כל הדרכים מובילות",
    "कल सुबह मैं बाज़ार",
    "Ingredients:\n- 2 cups of flour\n- 1 cup of sugar\n- 3 eggs\n\nMethod:\n1.",
    "2, 3, 5, 7, 11, 13, 17, 19, 23,",
    "12 + 7 = 19\n30 + 45 = 75\n8 + 64 =",
    TABLE,
    "a  b    c\t\td\n  1   22  333\n",
    "ACGT ACGT ACGT ACGT ACGT ACGT ACGT ACGT",
    "\N{GRINNING FACE}\N{ROCKET} launch day!!! so excited",
    "Dear Sir or Madam,\n\nI am writing to complain about the",
    "Theorem 3. Let f be continuous on [a, b]. Then f is",
    "no no no no no no no no no no",
)
