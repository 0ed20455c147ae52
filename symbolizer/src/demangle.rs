//! Names for people.
