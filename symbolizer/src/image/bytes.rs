//! Little-endian reads that cannot leave the slice.

/// `len` bytes at `at`.
pub(super) fn slice_at(bytes: &[u8], at: u64, len: u64) -> Option<&[u8]> {
    let start = usize::try_from(at).ok()?;
    bytes.get(start..start.checked_add(usize::try_from(len).ok()?)?)
}

/// What follows `at`.
pub(super) fn tail_at(bytes: &[u8], at: u64) -> Option<&[u8]> {
    bytes.get(usize::try_from(at).ok()?..)
}

pub(super) fn u8_at(bytes: &[u8], at: u64) -> Option<u8> {
    bytes.get(usize::try_from(at).ok()?).copied()
}

pub(super) fn u16_at(bytes: &[u8], at: u64) -> Option<u16> {
    slice_at(bytes, at, 2)?.try_into().ok().map(u16::from_le_bytes)
}

pub(super) fn u32_at(bytes: &[u8], at: u64) -> Option<u32> {
    slice_at(bytes, at, 4)?.try_into().ok().map(u32::from_le_bytes)
}

pub(super) fn i32_at(bytes: &[u8], at: u64) -> Option<i32> {
    slice_at(bytes, at, 4)?.try_into().ok().map(i32::from_le_bytes)
}

pub(super) fn u64_at(bytes: &[u8], at: u64) -> Option<u64> {
    slice_at(bytes, at, 8)?.try_into().ok().map(u64::from_le_bytes)
}

/// An unsigned word of 4 or 8 bytes.
pub(super) fn word_at(bytes: &[u8], at: u64, size: u64) -> Option<u64> {
    if size == 8 { u64_at(bytes, at) } else { u32_at(bytes, at).map(u64::from) }
}

/// The NUL-terminated string at `at`, without its NUL. A string that is not terminated is damaged: `None`.
pub(super) fn c_str_at(bytes: &[u8], at: u64) -> Option<&[u8]> {
    let tail = tail_at(bytes, at)?;
    memchr::memchr(0, tail).map(|end| &tail[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_end_at_the_slice() {
        let bytes = [1, 0, 0, 0, 2, 0, 0, 0, b'x', 0, b'y'];
        assert_eq!(u32_at(&bytes, 4), Some(2));
        assert_eq!(u32_at(&bytes, 8), None);
        assert_eq!(u64_at(&bytes, 0), Some(0x2_0000_0001));
        assert_eq!(u64_at(&bytes, u64::MAX), None);
        assert_eq!(word_at(&bytes, 0, 4), Some(1));
        assert_eq!(slice_at(&bytes, u64::MAX, u64::MAX), None);
        assert_eq!(c_str_at(&bytes, 8), Some(&b"x"[..]));
        assert_eq!(c_str_at(&bytes, 10), None, "not terminated");
        assert_eq!(c_str_at(&bytes, 11), None);
    }
}
