//! Gzip, recognised by its magic number under whatever file name.
//!
//! ```text
//! 1f 8b 08 …   one member; several may follow each other, as `cat a.gz b.gz` makes them
//! ```

use crate::error::ReadError;
use flate2::bufread::GzDecoder;
use std::io::Read;

/// A decompressed input.
#[derive(Debug, Default)]
pub(crate) struct Inflated {
    /// What could be decompressed.
    pub(crate) bytes: Vec<u8>,
    /// Why that is not everything.
    pub(crate) cut: Option<String>,
}

/// The input starts like a gzip member.
pub(crate) fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b])
}

/// Decompress every member. A stream that is cut or corrupt yields what came before the fault.
pub(crate) fn inflate(compressed: &[u8], limit: u64) -> Result<Inflated, ReadError> {
    let mut inflated = Inflated::default();
    let mut rest = compressed;
    // Padding with zeros after the last member is usual on tapes and block devices.
    while rest.iter().any(|&b| b != 0) {
        let room = limit.saturating_sub(inflated.bytes.len() as u64);
        let mut member = GzDecoder::new(rest);
        // One byte beyond the limit tells "exactly full" from "more to come".
        let result = member.by_ref().take(room.saturating_add(1)).read_to_end(&mut inflated.bytes);
        if inflated.bytes.len() as u64 > limit {
            return Err(ReadError::TooLarge { limit });
        }
        if let Err(error) = result {
            let what = match error.kind() {
                std::io::ErrorKind::UnexpectedEof => "the gzip stream is cut".to_owned(),
                _ => format!("the gzip stream is corrupt ({error})"),
            };
            inflated.cut = Some(format!("{what}; {} bytes could be decompressed", inflated.bytes.len()));
            break;
        }
        let after = member.into_inner();
        if after.len() == rest.len() {
            break;
        }
        rest = after;
    }
    Ok(inflated)
}

#[cfg(test)]
mod tests {
    use super::inflate;
    use crate::error::ReadError;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    fn member(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).expect("writing to memory");
        encoder.finish().expect("writing to memory")
    }

    #[test]
    fn members_follow_each_other_and_padding_is_ignored() {
        let mut input = member(b"one ");
        input.extend(member(b"two"));
        input.extend([0; 512]);
        let inflated = inflate(&input, 100).expect("valid");
        assert_eq!(inflated.bytes, b"one two");
        assert_eq!(inflated.cut, None);
    }

    #[test]
    fn a_cut_stream_yields_what_came_before() {
        let text: Vec<u8> = (0..20_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
        let whole = member(&text);
        let inflated = inflate(&whole[..whole.len() / 2], 1 << 20).expect("partly valid");
        assert!(inflated.cut.expect("said").contains("cut"));
        assert!(!inflated.bytes.is_empty());
        assert!(text.starts_with(&inflated.bytes));
    }

    #[test]
    fn a_bomb_stops_at_the_limit() {
        let bomb = member(&vec![0; 1 << 20]);
        assert!(matches!(inflate(&bomb, 1 << 16), Err(ReadError::TooLarge { limit: 65_536 })));
        assert_eq!(inflate(&bomb, 1 << 20).expect("exactly full").bytes.len(), 1 << 20);
    }

    #[test]
    fn rubbish_after_a_member_is_said() {
        let mut input = member(b"one");
        input.extend(b"rubbish");
        let inflated = inflate(&input, 100).expect("partly valid");
        assert_eq!(inflated.bytes, b"one");
        assert!(inflated.cut.is_some());
    }
}
