//! Which file stands behind a mapping.
