//! The state of warps and blocks.

use crate::exec::lanes::{Lanes, WARP};
use crate::exec::op::NONE;
use crate::memory::shared::Shared;
use crate::race::{Clocks, Publications};
use rustc_hash::FxHashMap;

/// All lanes.
pub(crate) const FULL: u32 = u32::MAX;

/// Lanes of a mask, ascending.
pub(crate) fn lanes_of(mut mask: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        if mask == 0 {
            return None;
        }
        let lane = mask.trailing_zeros() as usize;
        mask &= mask - 1;
        Some(lane)
    })
}

/// Where a call returns to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Frame {
    pub(crate) code: u32,
    /// The call itself.
    pub(crate) place: u32,
    pub(crate) registers: u32,
    pub(crate) local: u64,
}

/// For which reason lanes do not go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wait {
    /// They can go on.
    Nothing,
    /// Others of their scope have not come to the meeting point.
    Meeting,
    /// A barrier of the block.
    Barrier(u32),
    /// Lanes that take part in the same instruction.
    Lanes(u32),
}

/// Lanes of a warp that are at the same instruction.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) place: u32,
    pub(crate) mask: u32,
    pub(crate) scope: u32,
    pub(crate) code: u32,
    /// The first register of the frame.
    pub(crate) registers: u32,
    /// The first byte of the frame in local memory.
    pub(crate) local: u64,
    pub(crate) frames: Vec<Frame>,
    pub(crate) wait: Wait,
}

impl Group {
    /// Whether two groups are at the same point of the same calls.
    pub(crate) fn is_beside(&self, other: &Group) -> bool {
        self.place == other.place
            && self.scope == other.scope
            && self.code == other.code
            && self.registers == other.registers
            && self.frames == other.frames
    }
}

/// Lanes that separated and will meet again.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    pub(crate) meet: u32,
    /// How many frames are below the function of the meeting point.
    pub(crate) depth: usize,
    pub(crate) mask: u32,
    pub(crate) parent: u32,
}

/// An asynchronous copy that has not landed.
#[derive(Clone, Debug)]
pub(crate) struct PendingCopy {
    pub(crate) lane: u8,
    pub(crate) group: u32,
    pub(crate) to: u64,
    pub(crate) data: [u8; 16],
    pub(crate) bytes: u8,
    pub(crate) line: u32,
}

/// A warp.
#[derive(Clone, Debug, Default)]
pub(crate) struct Warp {
    pub(crate) index: u32,
    /// Lanes that have not exited.
    pub(crate) live: u32,
    pub(crate) registers: Vec<Lanes>,
    /// Lanes in which each register was given a value.
    pub(crate) defined: Vec<u32>,
    pub(crate) groups: Vec<Group>,
    pub(crate) scopes: Vec<Scope>,
    /// Local memory of all lanes, one after the other.
    pub(crate) local: Vec<u8>,
    /// Bytes of one lane in it.
    pub(crate) local_stride: usize,
    pub(crate) copies: Vec<PendingCopy>,
    /// How many groups of copies each lane has committed.
    pub(crate) committed: [u32; WARP],
    /// Steps since lanes last met or separated.
    pub(crate) steps_apart: u32,
}

impl Warp {
    /// Whether all lanes have exited.
    pub(crate) fn is_done(&self) -> bool {
        self.live == 0
    }

    /// Whether some lanes can go on.
    pub(crate) fn is_ready(&self) -> bool {
        self.groups.iter().any(|group| group.wait == Wait::Nothing)
    }

    /// Opens a scope.
    pub(crate) fn open_scope(&mut self, scope: Scope) -> u32 {
        let unused = |scope: &Scope| scope.mask == 0;
        match self.scopes.iter().position(unused) {
            Some(free) => {
                self.scopes[free] = scope;
                free as u32
            }
            None => {
                self.scopes.push(scope);
                self.scopes.len() as u32 - 1
            }
        }
    }

    /// Lets the lanes of complete scopes go on together.
    pub(crate) fn close_scopes(&mut self) {
        while let Some(complete) = self.complete_scope() {
            let scope = self.scopes[complete as usize].clone();
            self.scopes[complete as usize].mask = 0;
            let mut merged: Option<Group> = None;
            self.groups.retain(|group| {
                if group.scope != complete {
                    return true;
                }
                match &mut merged {
                    None => merged = Some(group.clone()),
                    Some(all) => all.mask |= group.mask,
                }
                false
            });
            if let Some(mut group) = merged {
                group.scope = scope.parent;
                group.wait = Wait::Nothing;
                if self.is_at_meeting(&group) {
                    group.wait = Wait::Meeting;
                }
                self.groups.push(group);
            }
            self.steps_apart = 0;
        }
    }

    /// A scope whose lanes are all at its meeting point, or gone.
    fn complete_scope(&self) -> Option<u32> {
        (0..self.scopes.len() as u32).find(|number| {
            let scope = &self.scopes[*number as usize];
            if scope.mask == 0 {
                return false;
            }
            let mut waiting = 0;
            for group in &self.groups {
                if group.scope == *number && group.wait == Wait::Meeting {
                    waiting |= group.mask;
                }
            }
            waiting == scope.mask & self.live
        })
    }

    /// Whether a group is at the meeting point of its scope.
    pub(crate) fn is_at_meeting(&self, group: &Group) -> bool {
        group.scope != NONE && {
            let scope = &self.scopes[group.scope as usize];
            scope.meet == group.place && scope.depth == group.frames.len()
        }
    }

    /// Lets lanes that wait for others of their scope go on without them.
    pub(crate) fn break_scope(&mut self) -> bool {
        let Some(at) = self.groups.iter().position(|group| group.wait == Wait::Meeting) else {
            return false;
        };
        let group = &mut self.groups[at];
        let scope = group.scope as usize;
        self.scopes[scope].mask &= !group.mask;
        group.scope = self.scopes[scope].parent;
        group.wait = Wait::Nothing;
        self.steps_apart = 0;
        true
    }

    /// Puts groups together that are at the same point.
    pub(crate) fn merge_groups(&mut self) {
        let mut at = 0;
        while at < self.groups.len() {
            let (first, rest) = self.groups.split_at_mut(at + 1);
            let mine = &mut first[at];
            let twin = rest.iter().position(|other| {
                other.wait == Wait::Nothing && mine.wait == Wait::Nothing && mine.is_beside(other)
            });
            match twin {
                Some(twin) => {
                    mine.mask |= rest[twin].mask;
                    self.groups.swap_remove(at + 1 + twin);
                }
                None => at += 1,
            }
        }
    }

    /// Lanes exit.
    pub(crate) fn exit(&mut self, lanes: u32) {
        self.live &= !lanes;
        self.copies.retain(|copy| lanes >> copy.lane & 1 == 0);
    }
}

/// A barrier of a block, by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct BarrierState {
    /// How many threads complete it; 0 if nobody has come yet, `u32::MAX` for all threads.
    pub(crate) expected: u32,
    pub(crate) arrived: u32,
    /// Lanes by warp that have come.
    pub(crate) tell: Vec<u32>,
    /// The lanes among them that wait.
    pub(crate) learn: Vec<u32>,
    /// The line of the first that came.
    pub(crate) line: u32,
    pub(crate) count: u32,
    pub(crate) all: bool,
    pub(crate) any: bool,
}

/// An mbarrier object.
#[derive(Clone, Debug)]
pub(crate) struct MbarrierState {
    pub(crate) expected: u32,
    pub(crate) pending: u32,
    pub(crate) transactions: i64,
    pub(crate) phase: u64,
    /// The knowledge that arrived threads published in this phase, and in the one before.
    pub(crate) told: Option<crate::race::Told>,
    pub(crate) told_before: Option<crate::race::Told>,
}

/// A block.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) index: u32,
    pub(crate) at: [u32; 3],
    pub(crate) shared: Shared,
    pub(crate) warps: Vec<Warp>,
    pub(crate) barriers: [BarrierState; 16],
    pub(crate) mbarriers: FxHashMap<u64, MbarrierState>,
    pub(crate) clocks: Clocks,
    pub(crate) publications: Publications,
    /// The warp that ran last.
    pub(crate) last_warp: usize,
}

impl Block {
    /// Whether all threads have exited.
    pub(crate) fn is_done(&self) -> bool {
        self.warps.iter().all(Warp::is_done)
    }

    /// How many threads have not exited.
    pub(crate) fn live_threads(&self) -> u32 {
        self.warps.iter().map(|warp| warp.live.count_ones()).sum()
    }
}
