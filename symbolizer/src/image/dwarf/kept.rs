use std::sync::OnceLock;

/// A list that only grows, so that references into it stay good while others add to it.
///
/// Units keep references to their split parts, which are loaded in the middle of a look-up. A `Vec` behind a
/// lock could not hand those out; arenas that can are not `Sync`.
#[derive(Debug)]
pub(super) struct Kept<T> {
    first: OnceLock<Box<Node<T>>>,
}

#[derive(Debug)]
struct Node<T> {
    value: T,
    next: OnceLock<Box<Node<T>>>,
}

impl<T> Kept<T> {
    pub(super) fn new() -> Self {
        Self { first: OnceLock::new() }
    }

    pub(super) fn push(&self, value: T) -> &T {
        let mut node = Box::new(Node { value, next: OnceLock::new() });
        let mut slot = &self.first;
        loop {
            match slot.set(node) {
                Ok(()) => break,
                Err(not_set) => node = not_set,
            }
            match slot.get() {
                Some(taken) => slot = &taken.next,
                None => unreachable!("a slot that refused a node holds one"),
            }
        }
        match slot.get() {
            Some(node) => &node.value,
            None => unreachable!("the node was put there above"),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        std::iter::successors(self.first.get(), |node| node.next.get()).map(|node| &node.value)
    }
}

impl<T> Drop for Kept<T> {
    /// Without recursion, however long the list is.
    fn drop(&mut self) {
        let mut next = self.first.take();
        while let Some(mut node) = next {
            next = node.next.take();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_outlive_later_pushes() {
        let kept = Kept::new();
        let first: &String = kept.push("first".to_owned());
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let kept = &kept;
                scope.spawn(move || {
                    (0..100).for_each(|i| assert_eq!(*kept.push(format!("{thread} {i}")), format!("{thread} {i}")))
                });
            }
        });
        assert_eq!(first, "first");
        assert_eq!(kept.iter().count(), 401);
    }

    #[test]
    fn long_lists_drop_without_overflow() {
        let mut kept = Kept::new();
        // From the back, since pushing walks the whole list.
        for i in 0..200_000 {
            let next = std::mem::replace(&mut kept, Kept::new()).first.take();
            let node = Box::new(Node { value: i, next: OnceLock::new() });
            if let Some(next) = next {
                node.next.set(next).unwrap();
            }
            kept.first.set(node).unwrap();
        }
        drop(kept);
    }
}
