"""Changes a file a little, as a broken program, a bad disk or a stranger would."""

import random

#: What readers stumble over.
WORDS = [
    b"", b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b"\n\n", b"\t", b",", b";", b'"', b"'", b"\\", b"*", b"{", b"}", b"|",
    b"...", b"[", b"]", b"[1;2]", b"[;]", b"{a|b}", b"nan", b"inf", b"-inf", b"1e999", b"-0", b"9" * 40, b"0x10", b"null",
    b"None", b"true", b"=1+1", b"@", b"../../x", b"/dev/null", b"<b>", b"\xe2\x80\xae", b"\xf0\x9f\x98\x80", b"0001-01-01",
    b"9999-12-31", b">=", b"<=", b"in every", b" at 95%", b"and", b"k", b"(", b")", b"=", b"[[steps]]", b"#", b'"""', b"{}",
]  # fmt: skip


def mutate(content: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    """Cut, repeat, exchange or insert something, one to four times."""
    for _ in range(rng.randint(1, 4)):
        start = rng.randrange(len(content) + 1)
        end = min(start + rng.choice([0, 1, 1, 4, 20, 200]), len(content))
        piece = content[start:end]
        new = rng.choice(
            [
                b"",
                piece * rng.choice([2, 3, 50]),
                rng.choice(WORDS),
                bytes(rng.randrange(256) for _ in range(rng.randint(1, 4))),
                piece[::-1],
                _piece_of(rng.choice(others), rng),
            ]
        )
        content = content[:start] + new + content[end:]
        if rng.random() < 0.1:
            content = _swap_lines(content, rng)
    return content


def _piece_of(content: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(content) + 1)
    return content[start : start + rng.choice([3, 30])]


def _swap_lines(content: bytes, rng: random.Random) -> bytes:
    lines = content.split(b"\n")
    one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return b"\n".join(lines)
