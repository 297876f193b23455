//! Barriers of a block.

use crate::exec::lanes::WARP;
use crate::exec::op::{Barrier, BarrierReduce, NONE, Op};
use crate::exec::run::{Exec, Next};
use crate::exec::state::{Block, Wait, lanes_of};
use crate::report::{FaultKind, Spot};

/// All threads of the block.
const ALL: u32 = u32::MAX;

impl Exec<'_> {
    /// `bar` and `barrier`
    pub(crate) fn barrier(&mut self, barrier: &Barrier, mask: u32) -> Next {
        self.need_defined(barrier.id, mask);
        let lane = mask.trailing_zeros() as usize;
        let id = self.value(barrier.id)[lane] as u32;
        let threads = if barrier.count == NONE {
            ALL
        } else {
            self.need_defined(barrier.count, mask);
            self.value(barrier.count)[lane] as u32
        };
        if id >= 16 || (threads != ALL && (threads == 0 || !threads.is_multiple_of(32))) {
            self.fault(FaultKind::InvalidUse, lane, 3, None, || {
                format!(
                    "barrier {id} for {threads} threads: there are 16 barriers, for multiples of 32 threads"
                )
            });
            return Next::Follow;
        }
        let apart = self.warp.live & !mask;
        if barrier.aligned && apart != 0 {
            self.fault(FaultKind::DivergentBarrier, lane, 0, None, || {
                format!("lanes {mask:#010x} of a warp execute this barrier, but lanes {apart:#010x} do not")
            });
        }
        let exited = self.grid.threads - self.block.live_threads() - self.warp.live.count_ones();
        if threads == ALL && exited > 0 {
            self.fault(FaultKind::DivergentBarrier, lane, 1, None, || {
                format!("a barrier of all threads, of which {exited} have exited")
            });
        }
        self.arrive(barrier, id, threads, mask);
        self.grid.progress();
        if mask != self.group.mask {
            let mut rest = self.group.clone();
            rest.mask &= !mask;
            rest.place += 1;
            self.warp.groups.push(rest);
            self.group.mask = mask;
        }
        if barrier.waits {
            self.group.wait = Wait::Barrier(id);
            self.grid.check_barriers = true;
            return Next::Stop;
        }
        self.grid.check_barriers = true;
        Next::Yield
    }

    fn arrive(&mut self, barrier: &Barrier, id: u32, threads: u32, mask: u32) {
        let votes = match barrier.reduce {
            Some(_) => {
                self.need_defined(barrier.predicate.0, mask);
                let negate = if barrier.predicate.1 { u32::MAX } else { 0 };
                (self.bits(barrier.predicate.0) ^ negate) & mask
            }
            None => 0,
        };
        let warps = self.grid.warps as usize;
        let line = self.line;
        let state = &mut self.block.barriers[id as usize];
        if state.expected == 0 {
            *state = crate::exec::state::BarrierState {
                expected: threads,
                tell: vec![0; warps],
                learn: vec![0; warps],
                line,
                all: true,
                ..Default::default()
            };
        }
        let expected = state.expected;
        let twice = state.tell[self.warp.index as usize] & mask;
        state.arrived += mask.count_ones();
        state.tell[self.warp.index as usize] |= mask;
        if barrier.waits {
            state.learn[self.warp.index as usize] |= mask;
        }
        state.count += votes.count_ones();
        state.all &= barrier.reduce.is_none() || votes == mask;
        state.any |= votes != 0;
        let lane = mask.trailing_zeros() as usize;
        if expected != threads {
            self.fault(FaultKind::InvalidUse, lane, 4, None, || {
                let name = |count| if count == ALL { "all".into() } else { format!("{count}") };
                format!(
                    "barrier {id} for {} threads, of which others wait for {}",
                    name(threads),
                    name(expected)
                )
            });
        }
        if twice != 0 {
            self.fault(FaultKind::InvalidUse, lane, 5, None, || {
                format!("lanes {twice:#010x} arrive twice at barrier {id} in one phase")
            });
        }
    }

    /// Lanes have exited: those that wait at barriers of all threads may not have to wait for them.
    pub(crate) fn exited(&mut self, _lanes: u32) {
        self.grid.check_barriers = true;
    }
}

/// Lets threads go on that wait at complete barriers.
pub(crate) fn release(
    exec_block: &mut Block,
    linked: &crate::exec::build::link::Linked,
    collector: &mut crate::report::Collector,
) {
    let live = exec_block.live_threads();
    for id in 0..exec_block.barriers.len() {
        let state = &exec_block.barriers[id];
        if state.expected == 0 {
            continue;
        }
        let waiting: u32 = exec_block
            .warps
            .iter()
            .zip(&state.tell)
            .map(|(warp, tell)| (warp.live & tell).count_ones())
            .sum();
        let complete = match state.expected {
            ALL => waiting == live && live > 0,
            count => state.arrived >= count,
        };
        if !complete {
            continue;
        }
        let state = std::mem::take(&mut exec_block.barriers[id]);
        if state.expected != ALL && state.arrived > state.expected {
            let spot = Spot { line: state.line, block: Some(exec_block.at), thread: None };
            collector.add(FaultKind::InvalidUse, spot, 6, None, || {
                format!("{} threads arrived at barrier {id} for {}", state.arrived, state.expected)
            });
        }
        exec_block.clocks.meet(&state.tell, &state.learn);
        for warp in 0..exec_block.warps.len() {
            wake(exec_block, linked, warp, id as u32, &state);
        }
    }
}

/// Lets the lanes of a warp go on that wait at a barrier.
fn wake(
    block: &mut Block,
    linked: &crate::exec::build::link::Linked,
    warp: usize,
    id: u32,
    state: &crate::exec::state::BarrierState,
) {
    let warp = &mut block.warps[warp];
    for group in &mut warp.groups {
        if group.wait != Wait::Barrier(id) {
            continue;
        }
        group.wait = Wait::Nothing;
        let step = &linked.codes[group.code as usize].steps[group.place as usize];
        if let Op::Barrier(barrier) = &step.op
            && let Some(reduce) = barrier.reduce
        {
            let value = match reduce {
                BarrierReduce::Count => u64::from(state.count),
                BarrierReduce::And => u64::from(state.all),
                BarrierReduce::Or => u64::from(state.any),
            };
            let at = (group.registers + barrier.result) as usize;
            for lane in lanes_of(group.mask) {
                warp.registers[at][lane % WARP] = value;
            }
            warp.defined[at] |= group.mask;
        }
        group.place += 1;
    }
    for at in 0..warp.groups.len() {
        if warp.groups[at].wait == Wait::Nothing && warp.is_at_meeting(&warp.groups[at].clone()) {
            warp.groups[at].wait = Wait::Meeting;
        }
    }
    warp.close_scopes();
    if warp.groups.len() > 1 {
        warp.merge_groups();
    }
}
