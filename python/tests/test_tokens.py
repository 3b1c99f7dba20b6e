"""`tidemark --tokenizer` against Hugging Face's own: the same tokens for any text."""
import json
import os
import random
import subprocess

import pytest

tokenizers = pytest.importorskip("tokenizers")
COMMAND = os.environ.get("TIDEMARK")
pytestmark = pytest.mark.skipif(not COMMAND, reason="TIDEMARK=path of a tidemark with the CPU device")
SIZE = 600
MODEL = f"gpt2:1,16,1,8,{SIZE}"
TEXTS = [
    "The dog didn't bark; they'll say it's 3 o'clock, I've heard.",
    "  two  spaces   three    and a tab\t\tand lines\n\n\nend  ",
    " leading", "trailing ", "\n", " \n x", "x \n", "a  b", "'S 's''s '", "1234567890 12,345.67 ½ Ⅳ ٣٤",
    "Größe, naïve, façade — Ελληνικά, русский, 日本語テキスト, עברית, हिन्दी", "emoji 👩‍👩‍👧 👍🏽!", "\u00a0\u2003\u3000x\u0085y\u001cz",
    "a" * 3000, "ab" * 2000, "the the the " * 300, "<|endoftext|>", "#version: 0.2", "\u0120\u010a", "e\u0301 \u0301", "\ufeffx",
]


def run(*arguments):
    return subprocess.run([COMMAND, *arguments], check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A tokenizer of our own making (published ones cannot be downloaded here), and weights of a small model."""
    folder = tmp_path_factory.mktemp("tokens")
    text = folder / "text.txt"
    text.write_text("\n".join(TEXTS) * 20, encoding="utf-8")
    theirs = tokenizers.ByteLevelBPETokenizer()
    theirs.train([str(text)], vocab_size=SIZE, min_frequency=1, show_progress=False)
    theirs.save_model(str(folder))
    run("train", MODEL, "--data", str(text), "--tokenizer", str(folder), "--steps", "2", "--batch", "2", "--test-samples", "2", "--quiet",
        "--threads", "1", "--save-weights", str(folder / "w.safetensors"))
    return folder, theirs


def ids(folder, text):
    out = run("predict", MODEL, "--tokenizer", str(folder), "--weights", str(folder / "w.safetensors"), "--threads", "1", "--tokens", "1", "--json",
              "--prompt", text)
    return json.loads(out)["ids"][:-1]


@pytest.mark.parametrize("text", TEXTS)
def test_same_tokens(trained, text):
    folder, theirs = trained
    assert ids(folder, text) == theirs.encode(text).ids


def test_same_tokens_of_any_text(trained):
    folder, theirs = trained
    draw = random.Random(3)
    pieces = [" ", "  ", "\n", "'", "'s", "l", "re", "Z", "9", "²", "é", "Ж", "字", "!", "_", "\t", "\u2028", "\u200b", "𝒳", "𐅀", "\u00ad"]
    text = "".join(draw.choice(pieces) for _ in range(20000))
    assert ids(folder, text) == theirs.encode(text).ids


def test_text_comes_back(trained):
    folder, _ = trained
    out = run("predict", MODEL, "--tokenizer", str(folder), "--weights", str(folder / "w.safetensors"), "--threads", "1", "--tokens", "1", "--prompt", TEXTS[0])
    assert out.startswith(TEXTS[0])
