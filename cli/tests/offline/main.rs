//! The commands that read profiles, on recorded and made-up inputs.

mod field_inputs;
mod go_and_native;
mod kinds;
mod kit;
mod layers;
mod oracles;
mod other_profiles;
mod pages;
mod pasted;
mod pictures;
mod places;
mod series;
mod tables;
mod usage;
