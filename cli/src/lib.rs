//! The offheap command line.
