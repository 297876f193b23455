//! Instructions between the lanes of a warp.

use crate::exec::atomics::combine;
use crate::exec::lanes::{Lanes, WARP};
use crate::exec::op::{AtomicOp, NONE, Op, Shuffle, Slot, Vote};
use crate::exec::run::{Exec, Next};
use crate::exec::state::{Group, Wait, lanes_of};
use crate::isa::types::Type;
use crate::report::FaultKind;

impl Exec<'_> {
    /// Executes such an instruction once all lanes that take part have come.
    pub(crate) fn collective(&mut self, op: &Op, mask: u32) -> Next {
        let Some(members) = members(op) else { return Next::Follow };
        self.need_defined(members, mask);
        let first = mask.trailing_zeros() as usize;
        let same = self.lanes_naming(self.value(members)[first] as u32, members, mask);
        if same != mask && !self.split_by_members(op, members, mask, same) {
            return Next::Follow;
        }
        let Some(present) = self.gather(members, mask & same) else { return Next::Stop };
        self.exchange(op, present);
        Next::Follow
    }

    /// The lanes of a mask that name these members.
    fn lanes_naming(&self, wanted: u32, members: Slot, mask: u32) -> u32 {
        let named = self.value(members);
        lanes_of(mask).filter(|lane| named[*lane] as u32 == wanted).fold(0, |all, lane| all | 1 << lane)
    }

    /// Lanes that execute an instruction together may name different members, as tiles of a warp do: each set of members is an
    /// instruction of its own. Executes it for all sets if each is complete; otherwise the lanes of the first set become the group,
    /// for which the caller goes on, and the others follow on their own. Gives whether the caller has to go on.
    fn split_by_members(&mut self, op: &Op, members: Slot, mask: u32, first: u32) -> bool {
        let mut sets = Vec::new();
        let mut left = mask;
        while left != 0 {
            let wanted = self.value(members)[left.trailing_zeros() as usize] as u32;
            let set = self.lanes_naming(wanted, members, left);
            left &= !set;
            sets.push((wanted, set));
        }
        if sets.iter().all(|(wanted, set)| wanted & self.warp.live == *set) {
            for (_, set) in sets {
                self.exchange(op, set);
            }
            return false;
        }
        let mut push = |mask: u32, place: u32| {
            if mask != 0 {
                self.warp.groups.push(Group { mask, place, ..self.group.clone() });
            }
        };
        push(mask & !first, self.group.place);
        push(self.group.mask & !mask, self.group.place + 1);
        self.group.mask = first;
        true
    }

    /// Executes an instruction between the lanes that are present.
    fn exchange(&mut self, op: &Op, present: u32) {
        match op {
            Op::WarpBarrier { .. } => {
                self.block.clocks.meet_lanes(self.warp.index as usize, present);
            }
            Op::Shuffle { mode, to, predicate, from, by, clamp, .. } => {
                self.shuffle(*mode, [*to, *predicate], [*from, *by, *clamp], present);
            }
            Op::Vote { vote, to, from, negated, .. } => {
                self.vote(*vote, *to, *from, *negated, present);
            }
            Op::Match { all, to, predicate, from, .. } => {
                self.matching(*all, [*to, *predicate], *from, present);
            }
            Op::Reduce { op, ty, to, from, .. } => self.reduce(*op, *ty, *to, *from, present),
            Op::Elect { to, predicate, .. } => {
                let leader = present.trailing_zeros();
                self.set(*to, present, present, &[u64::from(leader); WARP]);
                self.set_bits(*predicate, present, present, 1 << leader);
            }
            _ => {}
        }
    }

    /// Waits for the lanes that a mask of members names. Gives those that are there once all are; they are the group then.
    fn gather(&mut self, members: Slot, mask: u32) -> Option<u32> {
        let first = mask.trailing_zeros() as usize;
        let wanted = self.value(members)[first] as u32;
        let outside = lanes_of(mask).find(|lane| wanted >> lane & 1 == 0);
        if let Some(lane) = outside {
            self.fault(FaultKind::WarpSync, lane, 0, None, || {
                format!("lane {lane} executes this, but is not among the members {wanted:#010x}")
            });
            return Some(mask);
        }
        let alive = wanted & self.warp.live;
        if alive == mask {
            return Some(mask);
        }
        self.gather_more(alive, wanted, mask)
    }

    /// Others of the warp are elsewhere: those that wait here join, otherwise this group waits for them.
    fn gather_more(&mut self, alive: u32, wanted: u32, mask: u32) -> Option<u32> {
        let rest = self.group.mask & !mask;
        let here = self.group.clone();
        let is_here = |group: &Group| {
            group.wait == Wait::Lanes(wanted)
                && group.place == here.place
                && group.code == here.code
                && group.frames == here.frames
        };
        let mut present = mask;
        for group in self.warp.groups.iter().filter(|group| is_here(group)) {
            present |= group.mask;
        }
        if present & alive == alive {
            let scope = self.group.scope;
            let mut joined = 0;
            let groups = std::mem::take(&mut self.warp.groups);
            for mut group in groups {
                if is_here(&group) && group.scope == scope {
                    joined |= group.mask;
                } else {
                    if is_here(&group) {
                        // Lanes of another scope go on by themselves from here.
                        group.wait = Wait::Nothing;
                        group.place += 1;
                    }
                    self.warp.groups.push(group);
                }
            }
            self.group.mask |= joined;
            return Some(present);
        }
        if rest != 0 {
            let mut others = here.clone();
            others.mask = rest;
            others.place += 1;
            self.warp.groups.push(others);
            self.group.mask = mask;
        }
        self.group.wait = Wait::Lanes(wanted);
        None
    }

    /// Lanes that wait for lanes that cannot come: reports it, and lets them go on.
    pub(crate) fn give_up_gathering(&mut self) -> bool {
        let waits = |group: &Group| matches!(group.wait, Wait::Lanes(_));
        let Some(at) = self.warp.groups.iter().position(waits) else { return false };
        let group = self.warp.groups[at].clone();
        let linked = self.linked;
        self.line = linked.codes[group.code as usize].steps[group.place as usize].line;
        let Wait::Lanes(wanted) = group.wait else { return false };
        let lane = group.mask.trailing_zeros() as usize;
        let missing = wanted & self.warp.live & !group.mask;
        self.fault(FaultKind::WarpSync, lane, 2, None, || {
            format!("lanes {missing:#010x} are members, but never come here")
        });
        // The instruction is left out, as its results have no meaning.
        self.warp.groups[at].wait = Wait::Nothing;
        self.warp.groups[at].place += 1;
        true
    }

    fn shuffle(&mut self, mode: Shuffle, to: [Slot; 2], from: [Slot; 3], present: u32) {
        let [source, by, clamp] = from;
        self.need_defined(by, present);
        self.need_defined(clamp, present);
        let (values, by, clamp) = (*self.value(source), *self.value(by), *self.value(clamp));
        let defined = self.defined(source);
        let mut out: Lanes = [0; WARP];
        let (mut known, mut valid) = (0, 0);
        for lane in lanes_of(present) {
            let (from, inside) = shuffle_source(mode, lane, by[lane] as u32, clamp[lane] as u32);
            out[lane] = values[from];
            valid |= u32::from(inside) << lane;
            // A lane that does not take part has no value to give.
            known |= ((present & defined) >> from & 1) << lane;
        }
        self.set(to[0], present, known, &out);
        if to[1] != NONE {
            self.set_bits(to[1], present, present, valid);
        }
    }

    fn vote(&mut self, vote: Vote, to: Slot, from: Slot, negated: bool, present: u32) {
        self.need_defined(from, present);
        let bits = (self.bits(from) ^ if negated { u32::MAX } else { 0 }) & present;
        let answer = match vote {
            Vote::All => bits == present,
            Vote::Any => bits != 0,
            Vote::Uniform => bits == 0 || bits == present,
            Vote::Ballot => {
                self.set(to, present, present, &[u64::from(bits); WARP]);
                return;
            }
        };
        self.set(to, present, present, &[u64::from(answer); WARP]);
    }

    fn matching(&mut self, all: bool, to: [Slot; 2], from: Slot, present: u32) {
        self.need_defined(from, present);
        let values = *self.value(from);
        let mut out = [0; WARP];
        for lane in lanes_of(present) {
            for other in lanes_of(present) {
                out[lane] |= u64::from(values[lane] == values[other]) << other;
            }
        }
        let equal = lanes_of(present).all(|lane| out[lane] == u64::from(present));
        if all {
            out = [if equal { u64::from(present) } else { 0 }; WARP];
        }
        self.set(to[0], present, present, &out);
        if to[1] != NONE {
            self.set(to[1], present, present, &[u64::from(equal); WARP]);
        }
    }

    fn reduce(&mut self, op: AtomicOp, ty: Type, to: Slot, from: Slot, present: u32) {
        self.need_defined(from, present);
        let values = *self.value(from);
        let mut lanes = lanes_of(present);
        let Some(first) = lanes.next() else { return };
        let sum = lanes.fold(values[first], |sum, lane| combine(op, ty, sum, values[lane], 0));
        self.set(to, present, present, &[sum; WARP]);
    }
}

fn members(op: &Op) -> Option<Slot> {
    match op {
        Op::WarpBarrier { members }
        | Op::Shuffle { members, .. }
        | Op::Vote { members, .. }
        | Op::Match { members, .. }
        | Op::Reduce { members, .. }
        | Op::Elect { members, .. } => Some(*members),
        _ => None,
    }
}

/// From which lane a lane reads in `shfl`, and whether that is inside of its segment; the lane itself if not. As the PTX manual
/// defines it.
fn shuffle_source(mode: Shuffle, lane: usize, by: u32, clamp: u32) -> (usize, bool) {
    let lane = lane as u32;
    let by = (by & 0x1f) as i64;
    let segment = clamp >> 8 & 0x1f;
    let bound = clamp & 0x1f;
    let highest = i64::from(lane & segment | bound & !segment);
    let lowest = i64::from(lane & segment);
    let (from, inside) = match mode {
        Shuffle::Up => {
            let from = i64::from(lane) - by;
            (from, from >= highest)
        }
        Shuffle::Down => {
            let from = i64::from(lane) + by;
            (from, from <= highest)
        }
        Shuffle::Butterfly => {
            let from = i64::from(lane) ^ by;
            (from, from <= highest)
        }
        Shuffle::Index => {
            let from = lowest | by & !i64::from(segment);
            (from, from <= highest)
        }
    };
    if inside { (from as usize & 31, true) } else { (lane as usize, false) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Segments of eight lanes: the mask is `(32 - 8) << 8`, the bound 31 or, upwards, 0.
    #[test]
    fn shuffles_stay_in_their_segment() {
        let of = |mode, lane, by, bound: u32| shuffle_source(mode, lane, by, 0x1800 | bound);
        assert_eq!(of(Shuffle::Down, 3, 4, 31), (7, true));
        assert_eq!(of(Shuffle::Down, 4, 4, 31), (4, false));
        assert_eq!(of(Shuffle::Up, 12, 4, 0), (8, true));
        assert_eq!(of(Shuffle::Up, 11, 4, 0), (11, false));
        assert_eq!(of(Shuffle::Butterfly, 10, 1, 31), (11, true));
        assert_eq!(of(Shuffle::Index, 20, 5, 31), (21, true));
    }
}
