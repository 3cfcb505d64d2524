"""Frames: whatever is wrong with the bytes ends in a CodecError that says what."""

from __future__ import annotations

import msgspec
import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from greenline.kernel import codec
from greenline.kernel.codec import HEADER_SIZE, Codec, CodecError, Garbled, Log, Truncated, UnknownVersion, seal, unseal


class Note(msgspec.Struct, frozen=True, tag=True):
    number: int
    text: bytes


class Ping(msgspec.Struct, frozen=True, tag=True):
    pass


NOTES: Codec[Note | Ping] = Codec(7, Note | Ping)


@given(st.integers(0, 2**60), st.binary(max_size=300))
def test_what_was_encoded_is_decoded(number: int, text: bytes) -> None:
    note = Note(number, text)
    assert NOTES.decode(unseal(NOTES.encode(note))) == note


def test_a_frame_cut_at_any_byte_is_truncated() -> None:
    frame = NOTES.encode(Note(1, b"hello"))
    for length in range(len(frame)):
        with pytest.raises(Truncated):
            unseal(frame[:length])


def test_a_frame_with_any_bit_flipped_is_refused() -> None:
    frame = NOTES.encode(Note(1, b"hello"))
    for place in range(len(frame) * 8):
        garbled = bytearray(frame)
        garbled[place // 8] ^= 1 << place % 8
        with pytest.raises(CodecError):
            unseal(bytes(garbled))


def of_version(version: int, frame: bytes) -> bytes:
    """As another Greenline would write it: its header's check fits."""
    prefix = frame[:1] + bytes([version]) + frame[2:7]
    return prefix + (crc32c(prefix) & 0xFFFF).to_bytes(2, "big") + frame[9:]


def test_a_header_of_which_a_crash_left_the_first_byte_is_torn_and_not_of_another_version() -> None:
    log = Log(NOTES.encode(Ping()) + NOTES.encode(Ping())[:1] + bytes(40))
    assert len(list(log)) == 1
    assert isinstance(log.torn, Garbled)


def test_another_version_is_named() -> None:
    frame = of_version(9, NOTES.encode(Ping()))
    with pytest.raises(UnknownVersion, match="version 9, but this Greenline reads version 1"):
        unseal(bytes(frame))


@given(st.binary(max_size=200))
def test_noise_is_refused_and_nothing_else_happens(noise: bytes) -> None:
    with pytest.raises(CodecError):
        unseal(noise)


@given(st.binary(max_size=60))
def test_a_body_that_is_well_sealed_but_nonsense_is_garbled(body: bytes) -> None:
    frame = unseal(seal(7, body))
    try:
        decoded = NOTES.decode(frame)
    except Garbled:
        return
    assert isinstance(decoded, Note | Ping), "a body that fits by chance is a message like any other"


def test_a_body_of_deep_nesting_is_garbled_and_not_a_crash() -> None:
    with pytest.raises(Garbled):
        NOTES.decode(unseal(seal(7, b"\x91" * 100_000)))


def test_a_body_of_another_channel_is_garbled() -> None:
    with pytest.raises(Garbled, match="channel 8 where 7"):
        NOTES.decode(unseal(seal(8, b"")))


def test_a_datagram_is_one_frame_and_nothing_after_it() -> None:
    frame = NOTES.encode(Ping())
    assert codec.unseal_one(frame).channel == 7
    with pytest.raises(Garbled, match="3 bytes after the frame"):
        codec.unseal_one(frame + b"abc")


def test_a_body_too_large_for_a_frame_is_the_callers_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "LARGEST_BODY", 10)
    with pytest.raises(ValueError, match="cut it in parts"):
        seal(7, b"x" * 11)


def test_a_channel_fits_a_byte() -> None:
    with pytest.raises(ValueError, match="channel 256"):
        Codec(256, Ping)


def test_a_log_cut_at_any_byte_keeps_every_whole_record() -> None:
    records = [NOTES.encode(Note(number, b"x" * number)) for number in range(5)]
    whole = b"".join(records)
    for length in range(len(whole) + 1):
        log = Log(whole[:length])
        kept = [NOTES.decode(frame) for frame in log]
        ends = [sum(map(len, records[: n + 1])) for n in range(5)]
        assert len(kept) == sum(end <= length for end in ends)
        assert log.end == sum(map(len, records[: len(kept)]))
        assert (log.torn is None) == (log.end == length)


def test_a_torn_last_record_is_torn_also_when_it_carries_whole_frames_inside() -> None:
    """A bundle may hold frames: seeing one behind the tear must not look like damage."""
    inner = seal(7, b"inner")
    outer = seal(7, inner * 3 + b"the rest")
    log = Log(seal(7, b"first") + outer[:-4])
    assert len(list(log)) == 1
    assert isinstance(log.torn, Truncated)


@pytest.mark.parametrize("place", [0, 3, 5, HEADER_SIZE - 1, HEADER_SIZE + 1])
def test_damage_with_whole_records_after_it_is_not_passed_over(place: int) -> None:
    first, second = seal(7, b"first record"), seal(7, b"second record")
    damaged = bytearray(first + second)
    damaged[place] ^= 0x10
    with pytest.raises(Garbled, match="damaged at byte 0, with whole records after it"):
        list(Log(bytes(damaged)))


def test_a_garbled_last_record_is_torn() -> None:
    frame = bytearray(seal(7, b"last"))
    frame[-1] ^= 1
    log = Log(seal(7, b"first") + bytes(frame))
    assert len(list(log)) == 1
    assert isinstance(log.torn, Garbled)


def test_a_torn_record_in_a_zeroed_segment_is_torn_also_when_it_carries_whole_frames_inside() -> None:
    """The segment was zeroed beforehand, so the record has its full length and a tail of zeros."""
    outer = seal(7, seal(7, b"inner") * 3 + b"the rest")
    log = Log(seal(7, b"first") + outer[:-6] + bytes(6))
    assert len(list(log)) == 1
    assert isinstance(log.torn, Garbled)
