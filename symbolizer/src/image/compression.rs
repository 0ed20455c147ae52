//! Compressed sections: `SHF_COMPRESSED` with zlib or zstd, and the older `.zdebug_*`.

use super::bytes::{slice_at, tail_at, u32_at, u64_at};
use flate2::{Decompress, FlushDecompress};
use goblin::elf::compression_header::{ELFCOMPRESS_ZLIB, ELFCOMPRESS_ZSTD};
use std::io::Read;
use thiserror::Error;

/// A section could not be decompressed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DecompressError {
    /// Neither zlib nor zstd.
    #[error("unknown compression type {0}")]
    UnknownKind(u32),
    /// The size that the header promises cannot come out of so few bytes.
    #[error("{from} compressed bytes claim to hold {to}")]
    Disproportionate {
        /// Compressed size.
        from: u64,
        /// Promised size.
        to: u64,
    },
    /// The stream is damaged or ends early.
    #[error("damaged compressed data")]
    Damaged,
}

/// No debug section compresses better than this; a header that says otherwise is after our memory. (Measured: Go and
/// C++ debug sections shrink to between a half and a twentieth.)
const RATIO_MAX: u64 = 1000;
/// Sections small enough to be allowed any ratio.
const SMALL: u64 = 1 << 20;

/// Decompress the content of a section with `SHF_COMPRESSED`:
///
/// ```text
/// 64 bit:  0 ch_type u32 · 4 reserved u32 · 8 ch_size u64 · 16 ch_addralign u64 · 24 stream
/// 32 bit:  0 ch_type u32 · 4 ch_size u32  · 8 ch_addralign u32 · 12 stream
/// ```
pub(super) fn decompress_section(content: &[u8], is_64: bool) -> Result<Vec<u8>, DecompressError> {
    let kind = u32_at(content, 0).ok_or(DecompressError::Damaged)?;
    let (size, stream) = if is_64 {
        (u64_at(content, 8), tail_at(content, 24))
    } else {
        (u32_at(content, 4).map(u64::from), tail_at(content, 12))
    };
    let (size, stream) = size.zip(stream).ok_or(DecompressError::Damaged)?;
    match kind {
        ELFCOMPRESS_ZLIB => inflate(stream, size),
        ELFCOMPRESS_ZSTD => {
            let decoder = ruzstd::decoding::StreamingDecoder::new(stream).map_err(|_| DecompressError::Damaged)?;
            let mut out = room_for(stream, size)?;
            decoder.take(size).read_to_end(&mut out).map_err(|_| DecompressError::Damaged)?;
            whole(out, size)
        }
        other => Err(DecompressError::UnknownKind(other)),
    }
}

/// Decompress the content of a `.zdebug_*` section: `"ZLIB"`, the size as a big-endian u64, a zlib stream.
pub(super) fn decompress_zdebug(content: &[u8]) -> Result<Vec<u8>, DecompressError> {
    let size = content
        .strip_prefix(b"ZLIB")
        .and_then(|rest| slice_at(rest, 0, 8))
        .and_then(|size| size.try_into().ok())
        .map(u64::from_be_bytes)
        .ok_or(DecompressError::Damaged)?;
    let stream = &content[12..];
    inflate(stream, size)
}

/// Decompress a zlib stream, all at once.
fn inflate(stream: &[u8], size: u64) -> Result<Vec<u8>, DecompressError> {
    let mut out = room_for(stream, size)?;
    let mut decoder = Decompress::new(true);
    decoder.decompress_vec(stream, &mut out, FlushDecompress::Finish).map_err(|_| DecompressError::Damaged)?;
    whole(out, size)
}

fn room_for(stream: &[u8], size: u64) -> Result<Vec<u8>, DecompressError> {
    let (from, to) = (stream.len() as u64, size);
    if to > SMALL && to / RATIO_MAX > from {
        return Err(DecompressError::Disproportionate { from, to });
    }
    Ok(Vec::with_capacity(usize::try_from(to).map_err(|_| DecompressError::Damaged)?))
}

fn whole(out: Vec<u8>, size: u64) -> Result<Vec<u8>, DecompressError> {
    if out.len() as u64 == size { Ok(out) } else { Err(DecompressError::Damaged) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::ZlibEncoder};
    use std::io::Write;

    fn zlib(plain: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(plain).unwrap();
        encoder.finish().unwrap()
    }

    fn header64(kind: u32, size: u64, stream: &[u8]) -> Vec<u8> {
        [&kind.to_le_bytes()[..], &[0; 4], &size.to_le_bytes(), &1u64.to_le_bytes(), stream].concat()
    }

    #[test]
    fn zlib_zstd_and_zdebug() {
        let plain = b"debug debug debug".repeat(100);
        let stream = zlib(&plain);
        assert_eq!(decompress_section(&header64(1, plain.len() as u64, &stream), true).as_deref(), Ok(&plain[..]));
        let header32 = [&1u32.to_le_bytes()[..], &(plain.len() as u32).to_le_bytes(), &[1, 0, 0, 0], &stream].concat();
        assert_eq!(decompress_section(&header32, false).as_deref(), Ok(&plain[..]));
        let zstd = ruzstd::encoding::compress_to_vec(&plain[..], ruzstd::encoding::CompressionLevel::Fastest);
        assert_eq!(decompress_section(&header64(2, plain.len() as u64, &zstd), true).as_deref(), Ok(&plain[..]));
        let old = [b"ZLIB", &(plain.len() as u64).to_be_bytes()[..], &stream].concat();
        assert_eq!(decompress_zdebug(&old).as_deref(), Ok(&plain[..]));
    }

    #[test]
    fn damaged() {
        let stream = zlib(b"hello");
        for (label, content, expected) in [
            ("empty", vec![], DecompressError::Damaged),
            ("unknown kind", header64(9, 5, &stream), DecompressError::UnknownKind(9)),
            ("promises too much", header64(1, 6, &stream), DecompressError::Damaged),
            ("cut", header64(1, 5, &stream[..6]), DecompressError::Damaged),
            (
                "promises 2^62 bytes",
                header64(1, 1 << 62, &stream),
                DecompressError::Disproportionate { from: stream.len() as u64, to: 1 << 62 },
            ),
        ] {
            assert_eq!(decompress_section(&content, true), Err(expected), "{label}");
        }
        assert_eq!(decompress_zdebug(b"ZLIB"), Err(DecompressError::Damaged));
        assert_eq!(decompress_zdebug(b""), Err(DecompressError::Damaged));
    }
}
