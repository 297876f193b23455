//! The plan of the memory that the threads of a block share: buffers whose lifetimes do not meet share bytes.
//!
//! A lifetime runs from the first statement that accesses a buffer to the last one, among the statements that all threads execute one after
//! the other. Another buffer may lie on the same bytes afterwards where a barrier stands in between: without one, a fast thread would
//! overwrite what a slow one has still to load. Where the buffers do not fit otherwise, barriers are added.

use rustc_hash::FxHashSet;
use tilewright_core::flat::access::for_each_access;
use tilewright_core::ids::BufferId;
use tilewright_core::stmt::Stmt;

use super::place::ALIGNMENT;

/// The places of some buffers.
pub(in crate::emit) struct Plan {
    /// The first byte of each buffer.
    pub(in crate::emit) offsets: Vec<u64>,
    /// The bytes of all together.
    pub(in crate::emit) bytes: u64,
    /// The statements in front of which a barrier has to be added.
    pub(in crate::emit) barriers: FxHashSet<*const Stmt>,
}

/// A buffer to be placed.
struct Tenant {
    bytes: u64,
    /// The first and the last statement that accesses it; `None` where none does.
    lifetime: Option<[usize; 2]>,
}

/// Places buffers of some sizes, which the statement of each thread accesses, in `limit` bytes if that is possible.
pub(in crate::emit) fn plan(body: &Stmt, buffers: &[(BufferId, u64)], limit: u64) -> Plan {
    let mut stmts = Vec::new();
    in_order(body, &mut stmts);
    let tenants: Vec<Tenant> =
        buffers.iter().map(|(buffer, bytes)| tenant(&stmts, *buffer, *bytes)).collect();
    let barriers: Vec<usize> =
        (0..stmts.len()).filter(|number| matches!(stmts[*number], Stmt::Barrier)).collect();
    let separated = |[_, last]: [usize; 2], [first, _]: [usize; 2]| {
        barriers.iter().any(|barrier| last < *barrier && *barrier < first)
    };
    let (offsets, bytes) = place(&tenants, &separated);
    if bytes <= limit {
        return Plan { offsets, bytes, barriers: FxHashSet::default() };
    }
    let follows = |[_, last]: [usize; 2], [first, _]: [usize; 2]| last < first;
    let (offsets, bytes) = place(&tenants, &follows);
    let barriers = missing(&tenants, &offsets, &separated);
    Plan {
        offsets,
        bytes,
        barriers: barriers.into_iter().map(|number| std::ptr::from_ref(stmts[number])).collect(),
    }
}

/// The statements that every thread executes, one after the other.
fn in_order<'s>(stmt: &'s Stmt, found: &mut Vec<&'s Stmt>) {
    match stmt {
        Stmt::Seq(stmts) => stmts.iter().for_each(|stmt| in_order(stmt, found)),
        Stmt::Alloc(node) => in_order(&node.body, found),
        _ => found.push(stmt),
    }
}

fn tenant(stmts: &[&Stmt], buffer: BufferId, bytes: u64) -> Tenant {
    let uses = |stmt: &&Stmt| {
        let mut found = false;
        for_each_access(stmt, &mut |access| found |= access.buffer == buffer);
        found
    };
    let first = stmts.iter().position(uses);
    // An asynchronous store may arrive at any time before the end.
    let last = match stmts.iter().any(|stmt| fills(stmt, buffer)) {
        true => Some(stmts.len() - 1),
        false => stmts.iter().rposition(uses),
    };
    Tenant { bytes, lifetime: first.zip(last).map(|(first, last)| [first, last]) }
}

/// Whether a statement stores to a buffer asynchronously.
fn fills(stmt: &Stmt, buffer: BufferId) -> bool {
    match stmt {
        Stmt::Store(store) => store.is_async() && store.buffer == buffer,
        _ => stmt.each_child().any(|child| fills(child, buffer)),
    }
}

/// The places of all tenants, the largest ones first, each as low as possible. `may_share` says whether the second lifetime may
/// have the bytes of the first one.
fn place(tenants: &[Tenant], may_share: &dyn Fn([usize; 2], [usize; 2]) -> bool) -> (Vec<u64>, u64) {
    let apart = |a: &Tenant, b: &Tenant| match (a.lifetime, b.lifetime) {
        (Some(a), Some(b)) => may_share(a, b) || may_share(b, a),
        _ => true,
    };
    let mut order: Vec<usize> = (0..tenants.len()).collect();
    order.sort_by_key(|number| std::cmp::Reverse(tenants[*number].bytes));
    let mut offsets = vec![0; tenants.len()];
    let mut placed: Vec<usize> = Vec::new();
    let mut end = 0;
    for number in order {
        let own = &tenants[number];
        let mut taken: Vec<[u64; 2]> = placed
            .iter()
            .filter(|other| !apart(own, &tenants[**other]))
            .map(|other| [offsets[*other], offsets[*other] + tenants[*other].bytes])
            .collect();
        taken.sort_unstable();
        let mut offset = 0_u64;
        for [begin, behind] in taken {
            if offset.saturating_add(own.bytes) <= begin {
                break;
            }
            offset = offset.max(behind.next_multiple_of(ALIGNMENT));
        }
        offsets[number] = offset;
        placed.push(number);
        end = end.max(offset.saturating_add(own.bytes));
    }
    (offsets, end.next_multiple_of(ALIGNMENT))
}

/// The statements in front of which a barrier is missing: the first ones of tenants that follow others on the same bytes.
fn missing(
    tenants: &[Tenant],
    offsets: &[u64],
    separated: &dyn Fn([usize; 2], [usize; 2]) -> bool,
) -> Vec<usize> {
    let mut firsts: Vec<[usize; 2]> = Vec::new();
    for (a, b) in pairs(tenants.len()) {
        let (Some(of_a), Some(of_b)) = (tenants[a].lifetime, tenants[b].lifetime) else { continue };
        let overlap =
            offsets[a] < offsets[b] + tenants[b].bytes && offsets[b] < offsets[a] + tenants[a].bytes;
        if overlap && of_a[1] < of_b[0] && !separated(of_a, of_b) {
            firsts.push([of_a[1], of_b[0]]);
        }
    }
    // One barrier as late as possible serves all pairs around it.
    firsts.sort_by_key(|[_, first]| *first);
    let mut added: Vec<usize> = Vec::new();
    for [last, first] in firsts {
        if !added.iter().any(|barrier| last < *barrier && *barrier <= first) {
            added.push(first);
        }
    }
    added
}

fn pairs(count: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..count).flat_map(move |a| (0..count).filter(move |b| *b != a).map(move |b| (a, b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenants(of: &[(u64, usize, usize)]) -> Vec<Tenant> {
        of.iter()
            .map(|(bytes, first, last)| Tenant { bytes: *bytes, lifetime: Some([*first, *last]) })
            .collect()
    }

    fn follows([_, last]: [usize; 2], [first, _]: [usize; 2]) -> bool {
        last < first
    }

    #[test]
    fn lifetimes_that_meet_have_bytes_of_their_own() {
        let mut seed = 7_u64;
        let mut below = |limit: u64| {
            // A linear congruential generator (Knuth, The Art of Computer Programming, volume 2, 3.3.4).
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % limit
        };
        for _ in 0..500 {
            let count = 1 + below(7);
            let of: Vec<(u64, usize, usize)> = (0..count)
                .map(|_| {
                    let first = below(9) as usize;
                    (below(50), first, first + below(3) as usize)
                })
                .collect();
            let tenants = tenants(&of);
            let (offsets, bytes) = place(&tenants, &follows);
            for (a, b) in pairs(tenants.len()) {
                let meets = of[a].1 <= of[b].2 && of[b].1 <= of[a].2;
                let overlaps = offsets[a] < offsets[b] + of[b].0 && offsets[b] < offsets[a] + of[a].0;
                assert!(!(meets && overlaps), "{of:?} {offsets:?}");
            }
            assert!(offsets.iter().zip(&of).all(|(offset, own)| offset + own.0 <= bytes), "{of:?}");
            assert!(bytes <= of.iter().map(|own| own.0.next_multiple_of(ALIGNMENT)).sum(), "{of:?}");
            let added = missing(&tenants, &offsets, &|_, _| false);
            for (a, b) in pairs(tenants.len()) {
                let overlaps = offsets[a] < offsets[b] + of[b].0 && offsets[b] < offsets[a] + of[a].0;
                let is_separated = added.iter().any(|barrier| of[a].2 < *barrier && *barrier <= of[b].1);
                assert!(!overlaps || of[a].2 >= of[b].1 || is_separated, "{of:?} {offsets:?} {added:?}");
            }
        }
    }

    #[test]
    fn a_chain_of_buffers_takes_the_bytes_of_two() {
        let (_, bytes) = place(&tenants(&[(64, 0, 1), (64, 1, 2), (64, 2, 3), (64, 3, 4)]), &follows);
        assert_eq!(bytes, 128);
    }
}
