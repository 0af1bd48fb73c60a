"""A digest is that of the values, in whatever order they stand."""

from hypothesis import given
from hypothesis import strategies as st

from shapelaw.specs.digests import digest_of

specs = st.dictionaries(st.text(), st.integers() | st.text() | st.none() | st.floats(allow_nan=False))


@given(specs)
def test_it_does_not_depend_on_the_order(spec: dict[str, object]) -> None:
    assert digest_of(dict(reversed(spec.items()))) == digest_of(spec)
    assert digest_of({**spec, "one more": 0}) != digest_of(spec)


def test_it_is_the_same_for_ever() -> None:
    """Of sha256('{"seed": 0, "study": "depth_width"}'), the first 16 digits."""
    assert digest_of({"study": "depth_width", "seed": 0}) == "ef2a19544a589929"
