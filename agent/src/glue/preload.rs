//! The environment as the process was started with it, and taking the agent out of its `LD_PRELOAD`.

use std::ffi::{CStr, c_char};

/// The strings `NAME=value`.
///
/// # Safety
/// `envp` is a null-terminated list of strings that live as long as the iterator and what it gives.
pub(super) unsafe fn variables<'a>(envp: *mut *mut c_char) -> impl Iterator<Item = &'a [u8]> {
    let mut entry = envp;
    std::iter::from_fn(move || {
        // SAFETY: by the contract; the iterator ends at the null and is not used after.
        unsafe {
            if (*entry).is_null() {
                return None;
            }
            let text = CStr::from_ptr(*entry).to_bytes();
            entry = entry.add(1);
            Some(text)
        }
    })
}

/// Removes the agent from `LD_PRELOAD`, in place, and leaves other preloads there.
///
/// In place, and not by `unsetenv`: Go reads the strings where the kernel put them, at the bottom of the stack, and not
/// through libc's `environ`. A list that becomes empty takes its variable with it: the entries after it move up by one.
/// (A reader that looks for the auxiliary vector behind the list finds a zero there, which is an empty vector. Go then
/// takes it from /proc/self/auxv.)
///
/// # Safety
/// `envp` is the null-terminated list of writable strings that the process was started with, and no other thread runs.
pub(super) unsafe fn leave(envp: *mut *mut c_char, is_agent: impl Fn(&[u8]) -> bool) {
    let mut entry = envp;
    // SAFETY: stays within the list up to its null, by the contract.
    unsafe {
        while !(*entry).is_null() {
            let text = CStr::from_ptr(*entry).to_bytes();
            let Some(list) = text.strip_prefix(b"LD_PRELOAD=") else {
                entry = entry.add(1);
                continue;
            };
            let rest = without(list, &is_agent);
            if rest.is_empty() {
                let mut from = entry;
                while !(*from).is_null() {
                    *from = *from.add(1);
                    from = from.add(1);
                }
                continue;
            }
            // Never longer than before: parts were only taken out.
            let target = (*entry).add(b"LD_PRELOAD=".len());
            std::ptr::copy_nonoverlapping(rest.as_ptr().cast(), target, rest.len());
            *target.add(rest.len()) = 0;
            entry = entry.add(1);
        }
    }
}

/// `LD_PRELOAD` is separated by colons or blanks.
fn without(list: &[u8], is_agent: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    list.split(|&byte| byte == b':' || byte == b' ')
        .filter(|part| !part.is_empty() && !is_agent(part))
        .collect::<Vec<_>>()
        .join(&b':')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after_leaving(variables: &[&str]) -> Vec<String> {
        let mut strings: Vec<Vec<u8>> = variables.iter().map(|text| [text.as_bytes(), b"\0"].concat()).collect();
        let mut list: Vec<*mut c_char> = strings.iter_mut().map(|text| text.as_mut_ptr().cast()).collect();
        list.push(std::ptr::null_mut());
        // SAFETY: a list as asked for, of live buffers.
        unsafe { leave(list.as_mut_ptr(), |part| part.ends_with(b"liboffheap_agent.so")) };
        list.iter()
            .take_while(|text| !text.is_null())
            // SAFETY: entries are the buffers above.
            .map(|&text| unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn the_agent_leaves_and_others_stay() {
        assert_eq!(after_leaving(&["A=1", "LD_PRELOAD=/x/liboffheap_agent.so", "B=2"]), ["A=1", "B=2"]);
        assert_eq!(
            after_leaving(&["LD_PRELOAD=/a.so:/x/liboffheap_agent.so /b.so", "B=2"]),
            ["LD_PRELOAD=/a.so:/b.so", "B=2"]
        );
        assert_eq!(after_leaving(&["LD_PRELOAD=/a.so"]), ["LD_PRELOAD=/a.so"]);
        assert_eq!(after_leaving(&["LD_PRELOAD_X=liboffheap_agent.so"]), ["LD_PRELOAD_X=liboffheap_agent.so"]);
        assert!(after_leaving(&[]).is_empty());
    }
}
