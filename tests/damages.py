"""What befalls a file's content: each takes the content, a place in it and some noise."""


def cut_short(content: bytes, at: int, noise: bytes) -> bytes:
    return content[:at]


def zero_filled(content: bytes, at: int, noise: bytes) -> bytes:
    return content[:at] + bytes(len(content) - at)


def flipped_bit(content: bytes, at: int, noise: bytes) -> bytes:
    return content[:at] + bytes([content[at] ^ 1 << noise[0] % 8]) + content[at + 1 :]


def overwritten(content: bytes, at: int, noise: bytes) -> bytes:
    return (content[:at] + noise + content[at + len(noise) :])[: len(content)]


def longer(content: bytes, at: int, noise: bytes) -> bytes:
    return content + noise
