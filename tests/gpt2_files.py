"""Files of a tokenizer with GPT-2's number of ids, of which only the bytes and one pair occur in text."""

import json

from tokenizers.pre_tokenizers import ByteLevel

PAIRS = b"#version: 0.2\nt h\n"


def vocabulary_json() -> bytes:
    """256 bytes, "th", words that no merge makes, and end-of-text: 50,257."""
    words = [
        *sorted(ByteLevel.alphabet()),
        "th",
        *(f"<{number}>" for number in range(49_999)),
        "<|endoftext|>",
    ]
    return json.dumps({word: number for number, word in enumerate(words)}).encode()
