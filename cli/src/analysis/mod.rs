//! Numbers in, verdict out: no I/O.
