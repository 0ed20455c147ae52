//! The offheap agent.
