"""The encoders against fastavro, which shares no code with them."""

import io

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.snapshot.avro import (
    ContainerWriter,
    encode_bytes,
    encode_long,
    encode_longs,
    encode_string,
    optional,
    optional_bytes_map,
    optional_long_map,
)

LONGS = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([s * 2**n + d for n in range(63) for d in (-1, 0, 1) for s in (-1, 1)]),
)
KEYS = st.integers(0, 2**31 - 1)


def fastavro_bytes(schema, value):
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, value)
    return out.getvalue()


def map_schema(value):
    fields = [{"name": "key", "type": "int"}, {"name": "value", "type": value}]
    return ["null", {"type": "array", "items": {"type": "record", "name": "pair", "fields": fields}}]


def pairs(mapping):
    return [{"key": key, "value": value} for key, value in mapping.items()] or None


@given(LONGS)
def test_long_is_encoded_as_fastavro_does(value):
    assert encode_long(value) == fastavro_bytes("long", value)


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 2**64, -(2**70)])
def test_long_beyond_64_bits_is_refused(value):
    with pytest.raises(OverflowError):
        encode_long(value)


@given(st.binary(max_size=300))
def test_bytes_are_encoded_as_fastavro_does(value):
    assert encode_bytes(value) == fastavro_bytes("bytes", value)


@given(st.text())
def test_string_is_encoded_as_fastavro_does(value):
    assert encode_string(value) == fastavro_bytes("string", value)


@given(st.lists(LONGS))
def test_array_of_longs_is_encoded_as_fastavro_does(values):
    assert encode_longs(values) == fastavro_bytes({"type": "array", "items": "long"}, values)


@given(st.none() | LONGS)
def test_optional_is_encoded_as_fastavro_does(value):
    assert optional(encode_long)(value) == fastavro_bytes(["null", "long"], value)


@given(st.lists(st.dictionaries(KEYS, LONGS), min_size=1, max_size=4))
def test_one_encoder_encodes_different_long_maps_as_fastavro_does(maps):
    encode = optional_long_map()
    assert [encode(each) for each in maps] == [fastavro_bytes(map_schema("long"), pairs(each)) for each in maps]


@given(st.sets(KEYS, min_size=1, max_size=20), LONGS)
def test_long_map_of_one_repeated_value_is_encoded_as_fastavro_does(keys, value):
    mapping = dict.fromkeys(keys, value)
    assert optional_long_map()(mapping) == fastavro_bytes(map_schema("long"), pairs(mapping))


@given(st.lists(st.dictionaries(KEYS, st.binary(max_size=20)), min_size=1, max_size=4))
def test_one_encoder_encodes_different_bytes_maps_as_fastavro_does(maps):
    encode = optional_bytes_map()
    assert [encode(each) for each in maps] == [fastavro_bytes(map_schema("bytes"), pairs(each)) for each in maps]


@pytest.mark.parametrize("size", [255, 256, 8191, 8192, 100_000])
def test_bytes_map_takes_long_values(size):
    mapping = {1: b"short", 2: b"x" * size}
    assert optional_bytes_map()(mapping) == fastavro_bytes(map_schema("bytes"), pairs(mapping))


def test_map_encoder_forgets_key_sets_and_stays_right():
    encode = optional_long_map()
    for key in [*range(600), 0, 599]:
        assert encode({key: key}) == fastavro_bytes(map_schema("long"), pairs({key: key}))


class Recorded(io.BytesIO):
    def __init__(self):
        super().__init__()
        self.sizes = []

    def write(self, content):
        self.sizes.append(len(content))
        return super().write(content)


@pytest.mark.parametrize("codec", ["deflate", "null"])
@pytest.mark.parametrize("count", [0, 1, 5_000])
def test_container_is_read_by_fastavro(codec, count):
    stream = Recorded()
    container = ContainerWriter(lambda: stream, schema='"string"', metadata={"a": "b"}, codec=codec)
    values = [f"value {number}" * 10 for number in range(count)]
    for value in values:
        container.append(encode_string(value))
    assert container.finish() == len(stream.getvalue())
    reader = fastavro.reader(io.BytesIO(stream.getvalue()))
    assert list(reader) == values
    assert reader.metadata["a"] == "b"
    assert reader.codec == codec


def test_container_holds_no_more_than_a_block():
    stream = Recorded()
    container = ContainerWriter(lambda: stream, schema='"bytes"', metadata={}, codec="null")
    for _ in range(3_000):
        container.append(encode_bytes(b"x" * 1_000))
    container.finish()
    assert len(stream.sizes) > 20
    assert max(stream.sizes) < 70_000


def test_container_opens_no_stream_before_there_is_something_to_write():
    def refuse():
        raise AssertionError("opened")

    ContainerWriter(refuse, schema='"bytes"', metadata={}).append(b"\x00")
