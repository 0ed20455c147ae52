//! From sampled to estimated values.
