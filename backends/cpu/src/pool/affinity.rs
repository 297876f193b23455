//! Which CPUs this process may run on, and how a thread is bound to one of them.
//!
//! Only Linux has the calls; elsewhere [`allowed_cpus`] is empty and the pool leaves its threads unpinned.

/// The CPUs that the calling thread may run on, ordered such that hardware threads of different cores come
/// first: every run of consecutive CPUs no longer than the number of cores, also around the end, then uses
/// each core once (on machines with the same number of hardware threads in every core).
///
/// Empty when the system does not say.
pub(super) fn allowed_cpus() -> Vec<usize> {
    let mut cpus = system::allowed();
    let ranks: Vec<usize> = cpus.iter().map(|&cpu| system::rank_within_core(cpu)).collect();
    let mut order: Vec<usize> = (0..cpus.len()).collect();
    order.sort_by_key(|&position| ranks[position]);
    cpus = order.into_iter().map(|position| cpus[position]).collect();
    cpus
}

/// The CPU that the calling thread runs on at this moment; it may have moved by the time the caller looks.
pub(super) fn current_cpu() -> Option<usize> {
    system::current()
}

/// Binds the calling thread to `cpu`; false when the system refuses, which costs speed and never correctness.
pub(super) fn pin_current_thread(cpu: usize) -> bool {
    system::pin(cpu)
}

/// Reads a list of CPUs in the kernel's notation (`0-3,8,10-11`); malformed parts are skipped.
#[cfg(any(target_os = "linux", test))]
fn parse_cpu_list(text: &str) -> Vec<usize> {
    text.trim()
        .split(',')
        .filter_map(|part| match part.split_once('-') {
            Some((first, last)) => Some((first.parse().ok()?, last.parse().ok()?)),
            None => part.parse().ok().map(|cpu: usize| (cpu, cpu)),
        })
        .flat_map(|(first, last): (usize, usize)| first..=last)
        .collect()
}

#[cfg(target_os = "linux")]
mod system {
    use std::mem::{size_of, zeroed};

    pub(super) fn allowed() -> Vec<usize> {
        // SAFETY: a `cpu_set_t` is a plain array of bits, for which all zeros is the empty set.
        let mut set: libc::cpu_set_t = unsafe { zeroed() };
        // SAFETY: the kernel writes at most the given number of bytes, which is the size of `set`; 0 is this
        // thread.
        let result = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) };
        if result != 0 {
            return Vec::new();
        }
        // SAFETY: `CPU_ISSET` reads one bit of `set`, and `cpu` is below the number of bits that it has.
        (0..libc::CPU_SETSIZE as usize).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) }).collect()
    }

    pub(super) fn rank_within_core(cpu: usize) -> usize {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        let siblings = std::fs::read_to_string(path).unwrap_or_default();
        super::parse_cpu_list(&siblings).iter().position(|&sibling| sibling == cpu).unwrap_or(0)
    }

    pub(super) fn current() -> Option<usize> {
        // SAFETY: the call takes no argument and touches no memory of ours.
        usize::try_from(unsafe { libc::sched_getcpu() }).ok()
    }

    pub(super) fn pin(cpu: usize) -> bool {
        if cpu >= libc::CPU_SETSIZE as usize {
            return false;
        }
        // SAFETY: as in `allowed`; `cpu` is below the number of bits; the kernel only reads `set`.
        unsafe {
            let mut set: libc::cpu_set_t = zeroed();
            libc::CPU_SET(cpu, &mut set);
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) == 0
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    pub(super) fn allowed() -> Vec<usize> {
        Vec::new()
    }

    pub(super) fn rank_within_core(_cpu: usize) -> usize {
        0
    }

    pub(super) fn current() -> Option<usize> {
        None
    }

    pub(super) fn pin(_cpu: usize) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_are_read_in_the_kernels_notation() {
        for (text, expected) in [
            ("0\n", vec![0]),
            ("0-3,8,10-11\n", vec![0, 1, 2, 3, 8, 10, 11]),
            ("", vec![]),
            ("2,x,5-", vec![2]),
        ] {
            assert_eq!(parse_cpu_list(text), expected, "{text:?}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_thread_can_be_bound_to_each_allowed_cpu() {
        let cpus = allowed_cpus();
        assert!(!cpus.is_empty(), "this test itself runs somewhere");
        for cpu in cpus {
            let seen = std::thread::spawn(move || pin_current_thread(cpu).then(current_cpu)).join().unwrap();
            assert_eq!(seen, Some(Some(cpu)));
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn an_impossible_cpu_is_refused() {
        assert!(!pin_current_thread(usize::MAX));
    }
}
