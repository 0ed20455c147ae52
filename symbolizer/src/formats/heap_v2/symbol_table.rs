//! Names that stand in front of a dump, as `jeprof --raw` puts them there.
//!
//! ```text
//! --- symbol
//! binary=/srv/demo/bin/ledgerd
//! 0x7f10c0020111 store::Arena::grow--store::Arena::reserve     inlined calls, innermost first
//! 0x55d0a0030333 ??                                            no name
//! ---
//! --- heap
//! heap_v2/524288
//! ```
//!
//! Names that jeprof took from `nm` end in their address, `leak<00000000000017e0>`, and stand for the outermost call; where
//! a chain begins with one of these, it is written outermost first:
//!
//! ```text
//! 0x55b84d6c6836 leak(It&)<00000000000017e0>--It::fill(int)--It::operator--(int)
//! ```
//!
//! They are somebody else's work of unknown quality, so they are kept aside and used where nothing better is found.

use crate::address::RuntimeAddress;
use crate::error::DamageLog;
use crate::formats::InputNames;
use crate::formats::text::{Cursor, Lines, excerpt, lossy};

const HEADING: &[u8] = b"--- symbol";

/// Whether a line begins such a table.
pub(crate) fn is_heading(line: &[u8]) -> bool {
    line.strip_prefix(HEADING).is_some_and(|rest| rest.trim_ascii().is_empty())
}

/// Whether these bytes begin such a table, and where its lines begin.
pub(crate) fn find(before_header: &[u8]) -> Option<usize> {
    let at = memchr::memmem::find(before_header, HEADING)?;
    let at_line_start = at == 0 || before_header[at - 1] == b'\n';
    let end = memchr::memchr(b'\n', &before_header[at..])?;
    (at_line_start && before_header[at + HEADING.len()..at + end].trim_ascii().is_empty()).then_some(at + end + 1)
}

/// Read the lines up to `---`. `first_line` is the number of the heading's line.
pub(crate) fn read(table: &[u8], first_line: u64, damage: &mut DamageLog) -> InputNames {
    let mut names = InputNames::default();
    for line in Lines::new(table) {
        if line.text.starts_with(b"---") {
            break;
        }
        if let Some(binary) = line.text.strip_prefix(b"binary=") {
            names.binary = Some(lossy(binary).into_owned());
            continue;
        }
        match entry(line.text) {
            Some((address, chain)) => names.insert(address, chain),
            None => damage.at_line(first_line + line.number, format!("not a name: `{}`", excerpt(line.text))),
        }
    }
    names
}

fn entry(text: &[u8]) -> Option<(RuntimeAddress, Vec<String>)> {
    let mut cursor = Cursor(text);
    cursor.skip(b"0x")?;
    let address = RuntimeAddress(cursor.hex()?);
    cursor.blanks();
    let chain = lossy(cursor.0);
    // jeprof writes `??` and addresses themselves where it found nothing.
    let is_name = |name: &&str| !matches!(*name, "" | "??") && !name.starts_with("0x");
    let mut chain: Vec<&str> = split_chain(&chain).filter(is_name).collect();
    if chain.first().is_some_and(|name| without_address(name) != *name) {
        chain.reverse();
    }
    Some((address, chain.into_iter().map(|name| without_address(name).to_owned()).collect()))
}

/// Cut off the address that jeprof puts behind what `nm` said.
fn without_address(name: &str) -> &str {
    let address = |name: &str| -> Option<usize> {
        let at = name.strip_suffix('>')?.rfind('<')?;
        let digits = &name[at + 1..name.len() - 1];
        (digits.len() == 16 && digits.bytes().all(|b| b.is_ascii_hexdigit())).then_some(at)
    };
    address(name).map_or(name, |at| &name[..at])
}

/// Split at `--`, but not inside `operator--`.
fn split_chain(chain: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(chain);
    std::iter::from_fn(move || {
        let text = rest?;
        let mut from = 0;
        while let Some(found) = text[from..].find("--") {
            let at = from + found;
            if text[..at].ends_with("operator") {
                from = at + 2;
                continue;
            }
            rest = Some(&text[at + 2..]);
            return Some(&text[..at]);
        }
        rest = None;
        Some(text)
    })
}

#[cfg(test)]
mod tests {
    use super::{entry, split_chain};

    #[test]
    fn chains_are_split_innermost_first() {
        for (chain, parts) in [
            ("a", vec!["a"]),
            ("a--b--c", vec!["a", "b", "c"]),
            ("It::operator----It::next", vec!["It::operator--", "It::next"]),
            ("It::operator--", vec!["It::operator--"]),
            ("It::operator--(int)--main", vec!["It::operator--(int)", "main"]),
        ] {
            assert_eq!(split_chain(chain).collect::<Vec<_>>(), parts, "{chain}");
        }
    }

    #[test]
    fn names_of_nm_lose_their_address_and_come_last() {
        for (line, expected) in [
            ("0x10 malloc_usable_size<0000000000031b30>", vec!["malloc_usable_size"]),
            (
                "0x10 leak(It&)<00000000000017e0>--It::fill(int)--It::operator--(int)",
                vec!["It::operator--(int)", "It::fill(int)", "leak(It&)"],
            ),
            ("0x10 grow--reserve", vec!["grow", "reserve"]),
            ("0x10 std::set<deadbeef>", vec!["std::set<deadbeef>"]),
        ] {
            assert_eq!(entry(line.as_bytes()).expect("an entry").1, expected, "{line}");
        }
    }

    #[test]
    fn what_is_no_name_is_left_out() {
        let (address, chain) = entry(b"0x10 ??").expect("an entry");
        assert_eq!((address.0, chain.len()), (0x10, 0));
        assert_eq!(entry(b"0x10 0x10").expect("an entry").1.len(), 0);
        assert!(entry(b"nonsense").is_none());
    }
}
