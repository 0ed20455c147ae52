//! A fast hash for the small keys of profiles.
//!
//! A dump of 100,000 stacks looks up three million addresses. The default SipHash costs more there than reading the
//! text; a folded 64×64→128 bit multiplication (the heart of wyhash) mixes as well for this purpose in a few cycles. It
//! is seeded per process, so that crafted input cannot choose its collisions.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::OnceLock;

/// Hash map with the fast hash.
pub(crate) type FastMap<K, V> = std::collections::HashMap<K, V, FastState>;
/// Hash set with the fast hash.
pub(crate) type FastSet<K> = std::collections::HashSet<K, FastState>;

/// Seed of the process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FastState(u64);

impl Default for FastState {
    fn default() -> Self {
        static SEED: OnceLock<u64> = OnceLock::new();
        Self(*SEED.get_or_init(|| RandomState::new().hash_one(0x9e37_79b9_7f4a_7c15_u64) | 1))
    }
}

impl BuildHasher for FastState {
    type Hasher = FastHasher;

    fn build_hasher(&self) -> FastHasher {
        FastHasher { state: self.0, seed: self.0 }
    }
}

/// State of one hash.
#[derive(Debug)]
pub(crate) struct FastHasher {
    state: u64,
    seed: u64,
}

impl FastHasher {
    fn mix(&mut self, word: u64) {
        let product = u128::from(self.state ^ word) * u128::from(self.seed ^ 0xa076_1d64_78bd_642f);
        self.state = product as u64 ^ (product >> 64) as u64;
    }
}

impl Hasher for FastHasher {
    fn finish(&self) -> u64 {
        let product = u128::from(self.state) * u128::from(0xe703_7ed1_a0b4_28db_u64);
        product as u64 ^ (product >> 64) as u64
    }

    fn write(&mut self, bytes: &[u8]) {
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            self.mix(u64::from_le_bytes(chunk.try_into().unwrap_or_default()));
        }
        let rest = chunks.remainder();
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            self.mix(u64::from_le_bytes(word));
        }
        // Lengths keep "ab" + "c" apart from "a" + "bc".
        self.mix(bytes.len() as u64);
    }

    fn write_u8(&mut self, word: u8) {
        self.mix(u64::from(word));
    }

    fn write_u32(&mut self, word: u32) {
        self.mix(u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        self.mix(word);
    }

    fn write_i64(&mut self, word: i64) {
        self.mix(word as u64);
    }

    fn write_usize(&mut self, word: usize) {
        self.mix(word as u64);
    }
}
